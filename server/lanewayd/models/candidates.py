"""What a run may call: its model, then those that take over when that one fails (spec 04, 6.1)."""

from dataclasses import dataclass

from lanewayd.messages import UNKNOWN_MODEL, ModelFacts


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model of a run's chain. `model` is the provider's own name of it."""

    provider: str
    model: str
    facts: ModelFacts = UNKNOWN_MODEL

    @classmethod
    def of(cls, reference: str, facts: ModelFacts = UNKNOWN_MODEL) -> "Candidate":
        """From `provider/model`, split at the first slash."""
        provider, _, model = reference.partition("/")
        return cls(provider, model, facts)

    @property
    def reference(self) -> str:
        """As it stands in `Run.model`."""
        return f"{self.provider}/{self.model}"
