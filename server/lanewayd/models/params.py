"""What the settings say that requests to a model carry (spec 04, R-4.17). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelParams:
    """`temperature`, `max_output_tokens` and `seed` hold for runs that do not say them; None or 0 = not said."""

    temperature: float | None = None
    max_output_tokens: int = 0
    seed: int | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Of the provider's language, by their names, as they go out."""


def params_of(*layers: Mapping[str, Any]) -> ModelParams:
    """The layers put together; of a name the last layer that has it decides, also of one that is a table."""
    fields = {name: value for layer in layers for name, value in layer.items()}
    return ModelParams(
        temperature=fields.pop("temperature", None),
        max_output_tokens=fields.pop("max_output_tokens", 0),
        seed=fields.pop("seed", None),
        fields=fields,
    )
