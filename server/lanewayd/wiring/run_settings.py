"""What runs obey, out of the settings."""

from lanewayd.loop.limits import Allowance
from lanewayd.runs.collaborators import RunSettings
from lanewayd.settings_schema import Settings


def run_settings(settings: Settings) -> RunSettings:
    """The values that every run is given."""
    of_run, of_session = settings.limits, settings.limits.session
    return RunSettings(
        delta_interval_s=settings.events.delta_interval_ms / 1000,
        run_allowance=Allowance(of_run.max_tokens, of_run.max_cost_usd),
        session_allowance=Allowance(of_session.max_tokens, of_session.max_cost_usd),
    )
