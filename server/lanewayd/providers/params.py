"""Fields that the settings add to a request's body. Pure."""

from collections.abc import Mapping
from typing import Any


def with_params(own: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of both. Where both have one, `own` says it, for that is what the run asks; two objects are put
    together in the same way."""
    merged = dict(own)
    for name, value in params.items():
        present = merged.get(name)
        if name not in merged:
            merged[name] = value
        elif isinstance(present, Mapping) and isinstance(value, Mapping):
            merged[name] = with_params(present, value)
    return merged
