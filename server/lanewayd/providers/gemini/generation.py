"""Which generation of Gemini a model is of, told by its name. Pure."""

import re
from dataclasses import dataclass

_NAME = re.compile(r"gemini-(?:[a-z]+-)*(\d{1,3})(?:\.(\d{1,3}))?")
_NEWEST = (999, 0)


@dataclass(frozen=True, slots=True)
class Generation:
    """`version` is (0, 0) for what is no Gemini; names that end with `latest` are of the newest."""

    version: tuple[int, int]
    is_pro: bool
    is_lite: bool

    @property
    def demands_signatures(self) -> bool:
        """A call comes back with its signature or is refused."""
        return self.version >= (3, 0)

    @property
    def has_levels(self) -> bool:
        """Thinking is said as a level."""
        return self.version >= (3, 0)

    @property
    def has_budgets(self) -> bool:
        """Thinking is said in tokens."""
        return (2, 5) <= self.version < (3, 0)


def generation_of(model: str) -> Generation:
    """The generation of `model`, with or without what stands before its name."""
    name = model.rpartition("/")[2].lower()
    version = (0, 0)
    if found := _NAME.match(name):
        version = (int(found[1]), int(found[2] or 0))
    elif name.startswith("gemini-") and name.endswith("-latest"):
        version = _NEWEST
    words = name.split("-")
    return Generation(version, is_pro="pro" in words, is_lite="lite" in words)
