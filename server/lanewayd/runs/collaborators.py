"""What every run of this process works with, given once by app."""

from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from lanewayd.clock import Clock
from lanewayd.loop.interface import StepGate, Workplace
from lanewayd.loop.limits import UNLIMITED, Allowance
from lanewayd.models.candidates import Candidate
from lanewayd.models.entering import ProbeThrottle
from lanewayd.models.interface import Profiles, SoleCredentials
from lanewayd.providers.interface import Provider
from lanewayd.records import Run, RunRequest
from lanewayd.runs.contexts import Contexts
from lanewayd.runs.ids import Ids
from lanewayd.runs.watches import RunWatches
from lanewayd.store.interface import Store
from lanewayd.telemetry.traces import Telemetry
from lanewayd.tools.interface import Toolset
from lanewayd.transcript.lock import SessionLocks


class Workshop(Protocol):
    """Gives a run its tools and the place where they work."""

    def toolset(self, run: Run) -> Toolset:
        """The tools of a run, after its policy."""

    def workplace(self, run: Run) -> Workplace:
        """Where they work."""

    def workspace(self, agent_id: str) -> str:
        """The folder of an agent, as the model is told of it."""


class BlobReader(Protocol):
    """Reads the files of attachments."""

    async def read(self, blob_hash: str) -> bytes | None:
        """None: it is not there any more, or cannot be read."""


class BlobFiles(BlobReader, Protocol):
    """The files of attachments; see store/blobs.py."""

    def holding(self, names: Collection[str]) -> AbstractContextManager[None]:
        """None of these files is swept away until the block ends."""

    def suspect(self, names: Iterable[str]) -> None:
        """Rows that named these are gone: the next sweep looks at them."""

    async def put(self, name: str, content: bytes) -> None:
        """Have a synced file of this content, whose name is held. Raises StoreUnavailable."""

    async def sweep(self, unnamed: Callable[[Collection[str]], Awaitable[Collection[str]]]) -> int:
        """Remove the files that no row names and nobody holds; how many those are. Raises what `unnamed` raises."""

    def close(self) -> None:
        """End its thread."""


class TranscriptArchives(Protocol):
    """Transcripts that left the store; see transcript/archives.py."""

    async def remove_all(self, tenant: str, session_key: str) -> None:
        """All of a session key."""


class NoArchives:
    """Implements TranscriptArchives where nothing is archived."""

    async def remove_all(self, tenant: str, session_key: str) -> None:
        return


class EventSanitiser(Protocol):
    """How the texts of a tool call look in events: cut, and without secrets (R-1.101)."""

    def arguments_json(self, arguments_json: str) -> str:
        """Arguments as a watcher may see them."""

    def shown(self, text: str) -> str:
        """Output as a watcher may see it."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Values of the settings that runs obey."""

    delta_interval_s: float
    run_allowance: Allowance = UNLIMITED
    session_allowance: Allowance = UNLIMITED
    unwind_limit_s: float = 30.0
    """After a stop the end is written when the task is gone, at the latest after this (R-2.22)."""


@dataclass(frozen=True, slots=True)
class Collaborators:
    """One object for all runs."""

    store: Store
    blobs: BlobFiles
    clock: Clock
    ids: Ids
    locks: SessionLocks
    watches: RunWatches
    provider: Callable[[str], Provider]
    """The provider of a name; raises LanewayError when its settings are gone."""
    candidates: Callable[[RunRequest], tuple[Candidate, ...]]
    """The models of a run in the order in which they are called; at least one. Raises LanewayError as `provider`."""
    workshop: Workshop
    gate: StepGate
    sanitiser: EventSanitiser
    settings: RunSettings
    telemetry: Telemetry = field(default_factory=Telemetry.off)
    contexts: Contexts = field(default_factory=Contexts)
    profiles: Profiles = field(default_factory=SoleCredentials)
    """The credentials of the providers and their health."""
    probes: ProbeThrottle = field(default_factory=ProbeThrottle)
    archives: TranscriptArchives = field(default_factory=NoArchives)
