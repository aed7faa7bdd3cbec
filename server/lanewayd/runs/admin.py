"""What operators ask: how the service stands, what it offers, and that it leaves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lanewayd.records import RunState
from lanewayd.runs.drain import Drain
from lanewayd.runs.followers import Followers
from lanewayd.runs.interface import LaneStatus
from lanewayd.runs.scheduler import Scheduler
from lanewayd.store.interface import Store


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """The service now."""

    version: str
    features: tuple[str, ...]
    started_at: datetime
    draining: bool
    lanes: tuple[LaneStatus, ...]
    runs_by_state: Mapping[RunState, int]
    sessions: int
    subscribers: int
    store_path: str
    store_bytes: int
    commit_ms: float


@dataclass(frozen=True, slots=True)
class AgentListing:
    """An agent that `agent_id` may name. `model` is empty when none is configured for it."""

    agent_id: str
    model: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelListing:
    """A model that `model` may name. `context_window` in tokens, 0 = unknown."""

    model: str
    api: str
    context_window: int
    available: bool


@dataclass(frozen=True, slots=True)
class ToolListing:
    """A tool that `tools_allow` may name."""

    name: str
    description: str
    schema: Mapping[str, Any]
    source: str


@dataclass(frozen=True, slots=True)
class Offer:
    """What this service is and has to offer, as build and settings give it."""

    version: str
    started_at: datetime
    agents: Callable[[], Sequence[AgentListing]]
    models: Callable[[], Sequence[ModelListing]]
    tools: Callable[[], Sequence[ToolListing]]


class Admin:
    """Reads all parts, changes none but the drain."""

    def __init__(self, offer: Offer, *, store: Store, scheduler: Scheduler, followers: Followers, drain: Drain) -> None:
        self._store = store
        self._scheduler = scheduler
        self._followers = followers
        self._drain = drain
        self._offer = offer

    async def status(self) -> ServiceStatus:
        """The service as it stands. Raises StoreUnavailable."""
        figures = await self._store.figures()
        return ServiceStatus(
            version=self._offer.version,
            features=(),
            started_at=self._offer.started_at,
            draining=self._drain.is_draining,
            lanes=tuple(LaneStatus(*lane) for lane in self._scheduler.book.lanes()),
            runs_by_state=figures.runs_by_state,
            sessions=figures.sessions,
            subscribers=self._followers.count,
            store_path=figures.path,
            store_bytes=figures.size_bytes,
            commit_ms=figures.commit_ms,
        )

    def drain(self) -> None:
        """Begin to leave; answers at once."""
        self._drain.request()

    def agents(self) -> list[AgentListing]:
        """By name."""
        return sorted(self._offer.agents(), key=lambda agent: agent.agent_id)

    def models(self) -> list[ModelListing]:
        """By name."""
        return sorted(self._offer.models(), key=lambda model: model.model)

    def tools(self) -> list[ToolListing]:
        """By name."""
        return sorted(self._offer.tools(), key=lambda tool: tool.name)
