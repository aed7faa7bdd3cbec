"""Puts the session service together: its rules, and the run service's side of them."""

from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.registry import RunRegistry
from lanewayd.runs.session_control import SessionControl
from lanewayd.sessions.interface import SessionModels
from lanewayd.sessions.lifecycle import Sessions


def make_sessions(collaborators: Collaborators, registry: RunRegistry, models: SessionModels) -> Sessions:
    """The session service of one process."""
    control = SessionControl(collaborators, registry)
    return Sessions(
        store=collaborators.store,
        writer=control,
        stopper=control,
        exporter=control,
        importer=control,
        models=models,
    )
