"""What a Claude model takes, told by its name. Pure.

A name that says no version is taken for one of the newest; what is no Claude at all has its own entry, `OTHER`.
Sources: platform.claude.com/docs, "Effort", "Thinking", "Structured outputs", the table of models, and the migration
guides of Opus 5, Opus 5.5, Sonnet 5.5 and Fable 5.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

_BY_KIND = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_BY_VERSION = re.compile(r"claude-(\d)(?:[-.](\d))?-(opus|sonnet|haiku)")
_NEWEST = (99, 0)


class Thinks(StrEnum):
    """How thinking is asked for."""

    NEVER = "never"
    BUDGET = "budget"
    """`thinking.budget_tokens`."""
    ADAPTIVE = "adaptive"
    """`thinking.type` adaptive and `output_config.effort`."""


class Off(StrEnum):
    """What a request says so that the model does not think."""

    NOTHING = "nothing"
    DISABLED = "disabled"
    BETWEEN_TOOLS = "between_tools"
    """It still thinks between tool calls, but not before its answer; less it does not take."""
    IMPOSSIBLE = "impossible"
    """It thinks always; the weakest effort is all there is."""


@dataclass(frozen=True, slots=True)
class Family:
    """What the models of a family have in common."""

    thinks: Thinks
    off: Off
    has_xhigh: bool
    has_max: bool
    hides_thoughts: bool
    """The text of thoughts comes only if the request says so (`thinking.display`)."""
    takes_sampling: bool
    """`temperature` is taken; the newer ones answer it with an error (R-4.32)."""
    has_schema: bool
    """`output_config.format` holds the answer to a JSON Schema."""
    default_cap: int
    """Output tokens to ask for when nobody says how many; at most 32,000 (R-4.30)."""
    most_output: int
    """The most output tokens that the model takes; 0 = not known."""


OTHER = Family(
    Thinks.BUDGET,
    Off.DISABLED,
    has_xhigh=False,
    has_max=False,
    hides_thoughts=False,
    takes_sampling=True,
    has_schema=False,
    default_cap=8_192,
    most_output=0,
)
"""Models of other makers that are offered in this language: a budget is what all that think understand, and 8,192
output tokens are about what every one takes."""


def family_of(model: str) -> Family:
    """What `model` takes."""
    name = model.rpartition("/")[2].lower()
    if "claude" not in name:
        return OTHER
    kind, version = _kind_and_version(name)
    is_preview = kind == "mythos-preview"
    return Family(
        thinks=Thinks.ADAPTIVE if version >= (4, 6) else Thinks.BUDGET if version >= (3, 7) else Thinks.NEVER,
        off=_off(kind, version),
        has_xhigh=version >= (4, 7) and not is_preview,
        has_max=version >= (4, 6),
        hides_thoughts=version >= (4, 7),
        takes_sampling=version < (4, 7),
        has_schema=version >= (4, 5),
        default_cap=min(32_000, _most_output(kind, version)),
        most_output=_most_output(kind, version),
    )


def _kind_and_version(name: str) -> tuple[str, tuple[int, int]]:
    if found := _BY_KIND.search(name):
        return found[1], (int(found[2]), int(found[3] or 0))
    if found := _BY_VERSION.search(name):
        return found[3], (int(found[1]), int(found[2] or 0))
    if "claude-mythos" in name:
        return "mythos-preview", (5, 0)
    if re.search(r"claude-(?:3|2|1|v\d|instant)", name):
        return "", (3, 0)
    return "", _NEWEST


def _off(kind: str, version: tuple[int, int]) -> Off:
    if version < (3, 7) or (4, 6) <= version < (5, 0) or version == _NEWEST:
        return Off.NOTHING
    if kind in ("fable", "mythos", "mythos-preview") or (kind == "opus" and version >= (5, 5)):
        return Off.IMPOSSIBLE
    return Off.BETWEEN_TOOLS if kind == "sonnet" and version >= (5, 5) else Off.DISABLED


def _most_output(kind: str, version: tuple[int, int]) -> int:
    if version >= (4, 6) and (kind, version) != ("sonnet", (4, 6)):
        return 128_000
    if version >= (3, 7):
        return 32_000 if kind == "opus" and version < (4, 5) else 64_000
    return 8_192 if version >= (3, 5) else 4_096
