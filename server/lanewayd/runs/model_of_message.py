"""Which model a message is accepted for: its own, else that of its session, else the agent's (spec 04, section 2).

The session is known to the store's writer only, so what it has is put in there (`AcceptRun.adapt`).
"""

from dataclasses import dataclass, replace
from typing import Protocol

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.messages import ThinkingLevel
from lanewayd.models.resolve import ModelChoice
from lanewayd.records import RunRequest, SessionSettings


class ModelCatalog(Protocol):
    """The models of the settings."""

    def choose(self, agent_id: str, requested: str = "", *, session: str = "") -> ModelChoice:
        """The model of a run: what the request names, else the session, else the agent's. Called by the store's writer
        too. Raises MODEL_UNKNOWN, MODEL_NOT_CONFIGURED."""

    def check_thinking(self, agent_id: str, model: str, level: ThinkingLevel) -> None:
        """Raises FIELD_INVALID for a level that `model`, a full reference, is known not to have."""


@dataclass(frozen=True, slots=True)
class ModelOfMessage:
    """The model of one message. `chosen`: without the session, or why there is none, which counts if that has none."""

    agents: ModelCatalog
    agent_id: str
    requested: str
    chosen: ModelChoice | LanewayError

    @classmethod
    def of(cls, agents: ModelCatalog, agent_id: str, *, requested: str, thinking: str) -> "ModelOfMessage":
        """Raises what is wrong whichever session the message is for: with what it names itself."""
        try:
            chosen: ModelChoice | LanewayError = agents.choose(agent_id, requested)
        except LanewayError as error:
            if requested or error.code is not ErrorCode.MODEL_NOT_CONFIGURED:
                raise
            chosen = error
        if requested and thinking and isinstance(chosen, ModelChoice):
            agents.check_thinking(agent_id, chosen.reference, ThinkingLevel(thinking))
        return cls(agents, agent_id, requested, chosen)

    def adapt(self, request: RunRequest, settings: SessionSettings) -> RunRequest:
        """`request` with model and thinking level as they are for a session with `settings`. Raises as `choose` and
        `check_thinking`; what the session has for thinking is never refused (R-4.22)."""
        chosen = self.chosen
        if settings.model and not self.requested:
            chosen = self.agents.choose(self.agent_id, session=settings.model)
        if isinstance(chosen, LanewayError):
            raise chosen
        if request.thinking and not self.requested:
            self.agents.check_thinking(self.agent_id, chosen.reference, ThinkingLevel(request.thinking))
        thinking = request.thinking or settings.thinking
        return replace(request, model=chosen.reference, model_source=chosen.source.value, thinking=thinking)
