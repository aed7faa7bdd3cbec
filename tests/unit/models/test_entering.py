"""Which model is called although its provider is cooling down: the table of R-4.72, probes, and the order of others."""

import pytest

from lanewayd.messages import FailureClass
from lanewayd.models.candidates import Candidate
from lanewayd.models.entering import Entry, Place, ProbeThrottle, entry, without_siblings_first

K = FailureClass
PRIMARY = Place(is_primary=True, is_requested=True, has_others=True)
LONE = Place(is_primary=True, is_requested=True, has_others=False)
UNASKED = Place(is_primary=True, is_requested=False, has_others=True)
OTHER = Place(is_primary=False, is_requested=False, has_others=True)
NEAR_S, FAR_S = 120.0, 121.0


@pytest.mark.parametrize(
    ("kind", "place", "ends_in_s", "expected"),
    [
        (K.AUTH, PRIMARY, NEAR_S, Entry.SKIP),
        (K.AUTH, OTHER, NEAR_S, Entry.SKIP),
        (K.AUTH_PERMANENT, PRIMARY, NEAR_S, Entry.SKIP),
        (K.AUTH_PERMANENT, OTHER, NEAR_S, Entry.SKIP),
        (K.BILLING, PRIMARY, NEAR_S, Entry.PROBE),
        (K.BILLING, PRIMARY, FAR_S, Entry.SKIP),
        (K.BILLING, LONE, FAR_S, Entry.PROBE),
        (K.BILLING, OTHER, NEAR_S, Entry.SKIP),
        *[(kind, PRIMARY, NEAR_S, Entry.PROBE) for kind in (K.RATE_LIMIT, K.OVERLOADED, K.UNKNOWN, K.TIMEOUT)],
        *[(kind, PRIMARY, FAR_S, Entry.SKIP) for kind in (K.RATE_LIMIT, K.OVERLOADED, K.UNKNOWN, K.TIMEOUT)],
        *[(kind, UNASKED, FAR_S, Entry.TRY) for kind in (K.RATE_LIMIT, K.OVERLOADED, K.UNKNOWN, K.TIMEOUT)],
        *[(kind, OTHER, FAR_S, Entry.TRY) for kind in (K.RATE_LIMIT, K.OVERLOADED, K.UNKNOWN)],
        (K.TIMEOUT, OTHER, NEAR_S, Entry.SKIP),
        (K.SERVER_ERROR, OTHER, NEAR_S, Entry.SKIP),
    ],
)
def test_reason_and_place_decide(kind: FailureClass, place: Place, ends_in_s: float, expected: Entry) -> None:
    assert entry(kind, ends_in_s, place, may_probe=True) is expected


@pytest.mark.parametrize("kind", [K.BILLING, K.RATE_LIMIT, K.OVERLOADED, K.TIMEOUT])
def test_without_the_right_to_probe_the_model_asked_for_is_skipped(kind: FailureClass) -> None:
    assert entry(kind, NEAR_S, PRIMARY, may_probe=False) is Entry.SKIP
    assert entry(kind, NEAR_S, LONE, may_probe=False) is Entry.SKIP


def test_a_provider_is_probed_every_thirty_seconds_at_most() -> None:
    throttle = ProbeThrottle()
    assert throttle.is_open("acme", 100.0)
    throttle.probed("acme", 100.0)
    assert not throttle.is_open("acme", 129.9)
    assert throttle.is_open("other", 100.0)
    assert throttle.is_open("acme", 130.0)


def test_models_of_other_providers_come_before_the_siblings_of_an_unavailable_one() -> None:
    chain = [Candidate.of(name) for name in ("a/1", "a/2", "b/1", "a/3", "c/1")]
    ordered = [candidate.reference for candidate in without_siblings_first(chain)]
    assert ordered == ["a/1", "b/1", "c/1", "a/2", "a/3"]
