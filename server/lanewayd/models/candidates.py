"""What a run may call: its model, then those that take over when that one fails (spec 04, 6.1)."""

from dataclasses import dataclass, field

from lanewayd.messages import UNKNOWN_MODEL, ModelFacts, ThinkingLevel
from lanewayd.models.params import ModelParams


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model of a run's chain. `model` is the provider's own name of it."""

    provider: str
    model: str
    facts: ModelFacts = UNKNOWN_MODEL
    thinking: ThinkingLevel | None = None
    """What this run asks of this model, as the model can do it (R-4.19, R-4.22); None = nothing is said."""
    cache_retention: str = "short"
    """How long its service shall keep the prompts: none, short or long."""
    params: ModelParams = field(default_factory=ModelParams)

    @classmethod
    def of(cls, reference: str, facts: ModelFacts = UNKNOWN_MODEL) -> "Candidate":
        """From `provider/model`, split at the first slash."""
        provider, _, model = reference.partition("/")
        return cls(provider, model, facts)

    @property
    def reference(self) -> str:
        """As it stands in `Run.model`."""
        return f"{self.provider}/{self.model}"
