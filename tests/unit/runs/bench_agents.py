"""The agents that the bench knows."""

from lanewayd.messages import ThinkingLevel
from lanewayd.models.resolve import ModelChoice, ModelSource

MODEL = "acme/m"


class BenchAgents:
    """Implements AgentCatalog: the agent `main`."""

    def has(self, agent_id: str) -> bool:
        return agent_id == "main"

    def timeout_s(self, agent_id: str) -> float:
        return 0.0

    def reasoning(self, agent_id: str) -> str:
        return "stream"

    def verbose(self, agent_id: str) -> str:
        return "off"

    def max_turns(self, agent_id: str) -> int:
        return 0

    def choose(self, agent_id: str, requested: str = "", *, session: str = "") -> ModelChoice:
        provider, _, model = (requested or session or MODEL).partition("/")
        return ModelChoice(provider, model, ModelSource.REQUEST if requested else ModelSource.DEFAULTS)

    def check_thinking(self, agent_id: str, model: str, level: ThinkingLevel) -> None:
        pass
