"""How a log is shown to readers who do not say it: as its session has it, else as its agent (spec 04, 3.3).

Owner of a small memory of sessions, so that readers do not ask the store at each event. A commit that changes what is
set for a session takes it out, so that the change counts from the next event on (R-4.36).
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

from lanewayd.records import SessionSettings
from lanewayd.sessions.keys import agent_of
from lanewayd.store.interface import DeleteSession, Store, UpdateSession

_KEPT = 1024


class AgentLooks(Protocol):
    """What the settings say. Agents that are gone have the defaults."""

    def verbose(self, agent_id: str) -> str:
        """off, on, full."""

    def reasoning(self, agent_id: str) -> str:
        """off, on, stream."""


@dataclass(frozen=True, slots=True)
class Look:
    """What readers of a session's log see."""

    shows_results: bool
    """Of tool calls, beside their arguments and outcome."""
    shows_reasoning: bool
    """While the model writes it. With `on` it is a part of the result instead (spec 08, 2.1)."""


class SessionLooks:
    """See the module."""

    def __init__(self, store: Store, agents: AgentLooks) -> None:
        self._store = store
        self._agents = agents
        self._known: OrderedDict[tuple[str, str], Look] = OrderedDict()
        self._changes = 0

    async def of(self, tenant: str, session_key: str) -> Look:
        """The look of a session by its canonical key; one that is not there looks as its agent says."""
        key = (tenant, session_key)
        look = self._known.get(key)
        if look is not None:
            return look
        changes = self._changes
        session = await self._store.session(tenant, session_key)
        look = self._look(agent_of(session_key), session.settings if session is not None else SessionSettings())
        if changes == self._changes and session is not None:  # else it may be out of date already
            self._known[key] = look
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return look

    def committed(self, command: object) -> None:
        """Hears of every commit."""
        if isinstance(command, UpdateSession | DeleteSession):
            self._changes += 1
            self._known.pop((command.tenant, command.session_key), None)

    def _look(self, agent_id: str, settings: SessionSettings) -> Look:
        verbose = settings.verbose or self._agents.verbose(agent_id)
        reasoning = settings.reasoning or self._agents.reasoning(agent_id)
        return Look(shows_results=verbose == "full", shows_reasoning=reasoning == "stream")
