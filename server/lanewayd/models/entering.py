"""Whether a model of the chain is called although all credentials of its provider are in failure windows, and in which
order the others come. Pure. Source: spec 04, R-4.72 to R-4.74."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lanewayd.messages import FailureClass
from lanewayd.models.candidates import Candidate

PROBE_MARGIN_S = 120.0
"""A probe is worth while this long before the window is over."""
PROBE_INTERVAL_S = 30.0
"""Of one provider, over all runs."""

_K = FailureClass
TRANSIENT = frozenset({_K.RATE_LIMIT, _K.OVERLOADED, _K.UNKNOWN, _K.TIMEOUT, _K.SERVER_ERROR})


class Entry(StrEnum):
    """What is done with a model whose provider is cooling down."""

    SKIP = "skip"
    TRY = "try"
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the model stands."""

    is_primary: bool
    """First of the chain."""
    is_requested: bool
    """What the run asked for."""
    has_others: bool
    """There are other models in the chain."""


def entry(kind: FailureClass, ends_in_s: float, place: Place, *, may_probe: bool) -> Entry:
    """The table of R-4.72. `may_probe`: the throttle of the provider allows it and the run has not probed it yet."""
    if kind in (FailureClass.AUTH, FailureClass.AUTH_PERMANENT):
        return Entry.SKIP
    is_near = ends_in_s <= PROBE_MARGIN_S
    if kind is FailureClass.BILLING:
        is_due = place.is_primary and may_probe and (is_near or not place.has_others)
        return Entry.PROBE if is_due else Entry.SKIP
    if place.is_primary:
        if not place.is_requested:
            return Entry.TRY
        return Entry.PROBE if is_near and may_probe else Entry.SKIP
    is_tried = kind in (FailureClass.RATE_LIMIT, FailureClass.OVERLOADED, FailureClass.UNKNOWN)
    return Entry.TRY if is_tried else Entry.SKIP


def without_siblings_first(chain: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The chain when the provider of its first model is unavailable for a while: models of others come before that
    one's siblings (R-4.74)."""
    first, rest = chain[0], chain[1:]
    others = [candidate for candidate in rest if candidate.provider != first.provider]
    siblings = [candidate for candidate in rest if candidate.provider == first.provider]
    return (first, *others, *siblings)


class ProbeThrottle:
    """Who probed which provider when. Owner: the process; told the time by who asks."""

    def __init__(self) -> None:
        self._probed_at_s: dict[str, float] = {}

    def is_open(self, provider: str, now_s: float) -> bool:
        """No probe of the provider in the last 30 s."""
        probed_at_s = self._probed_at_s.get(provider)
        return probed_at_s is None or now_s - probed_at_s >= PROBE_INTERVAL_S

    def probed(self, provider: str, now_s: float) -> None:
        """A probe is made."""
        self._probed_at_s[provider] = now_s
