"""The agents that the bench knows."""

MODEL = "acme/m"


class BenchAgents:
    """Implements AgentCatalog: the agent `main`."""

    def has(self, agent_id: str) -> bool:
        return agent_id == "main"

    def timeout_s(self, agent_id: str) -> float:
        return 0.0

    def max_turns(self, agent_id: str) -> int:
        return 0

    def model(self, agent_id: str, requested: str) -> str:
        return requested or MODEL
