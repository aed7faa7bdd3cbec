"""The rules of repetition, as tables."""

import grpc
import pytest

from laneway.errors import ClientClosed, Details, LanewayError, make_error
from laneway.retries import LONGEST_PAUSE_S, Losses, is_lost, pause_s

Code = grpc.StatusCode


def failure(code: Code, reason: str = "", retry_after_s: float | None = None) -> LanewayError:
    return make_error(code, "text", Details(reason=reason, retry_after_s=retry_after_s))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (failure(Code.UNAVAILABLE), True),
        (failure(Code.UNAVAILABLE, "DRAINING", 1.0), True),
        (failure(Code.UNAVAILABLE, "STORE_UNAVAILABLE", 1.0), True),
        (failure(Code.DEADLINE_EXCEEDED), True),
        # How gRPC calls a connection that was cut in the middle of a frame.
        (failure(Code.CANCELLED), True),
        (failure(Code.UNKNOWN), True),
        (failure(Code.INTERNAL), True),
        # The service itself says that something is wrong.
        (failure(Code.INTERNAL, "INTERNAL"), False),
        (failure(Code.INVALID_ARGUMENT, "MESSAGE_EMPTY"), False),
        (failure(Code.NOT_FOUND, "RUN_NOT_FOUND"), False),
        (failure(Code.OUT_OF_RANGE, "CURSOR_PRUNED"), False),
        (failure(Code.RESOURCE_EXHAUSTED, "QUEUE_FULL", 1.0), False),
        (failure(Code.RESOURCE_EXHAUSTED), False),
        (failure(Code.UNIMPLEMENTED), False),
        (failure(Code.UNAUTHENTICATED), False),
        (ClientClosed(), False),
    ],
    ids=lambda value: f"{value.status.name}-{value.reason}" if isinstance(value, LanewayError) else "",
)
def test_only_what_went_away_is_tried_again(error: LanewayError, expected: bool) -> None:
    assert is_lost(error) is expected


@pytest.mark.parametrize(
    ("losses", "jitter", "retry_after_s", "expected"),
    [
        (1, 0.0, None, 0.1),
        (2, 0.0, None, 0.2),
        (5, 0.0, None, 1.6),
        (6, 0.0, None, LONGEST_PAUSE_S),
        (10_000, 0.0, None, LONGEST_PAUSE_S),
        (2, 1.0, None, 0.1),
        (1, 0.0, 1.0, 1.0),
        (10, 0.0, 1.0, LONGEST_PAUSE_S),
        (1, 0.0, 0.0, 0.1),
        (1, 0.0, 3600.0, 3600.0),
    ],
)
def test_pauses_grow_to_a_limit_and_the_servers_suggestion_is_the_least(
    losses: int, jitter: float, retry_after_s: float | None, expected: float
) -> None:
    assert pause_s(losses, jitter=jitter, retry_after_s=retry_after_s) == pytest.approx(expected)


def test_losses_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="from 1"):
        pause_s(0, jitter=0.0)


def test_a_call_is_given_up_when_the_next_try_would_come_too_late() -> None:
    losses = Losses(1.0, since=100.0)
    lost = failure(Code.UNAVAILABLE)
    assert losses.pause_s(lost, now=100.0, jitter=0.0) == pytest.approx(0.1)
    assert losses.pause_s(lost, now=100.7, jitter=0.0) == pytest.approx(0.2)
    assert losses.pause_s(lost, now=100.7, jitter=0.0) is None


def test_a_suggestion_beyond_the_deadline_ends_the_call_at_once() -> None:
    assert Losses(10.0, since=0.0).pause_s(failure(Code.UNAVAILABLE, "DRAINING", 11.0), now=0.0, jitter=0.0) is None


def test_the_patience_of_a_stream_begins_with_its_loss_and_anew_after_a_contact() -> None:
    losses = Losses(1.0)
    lost = failure(Code.UNAVAILABLE)
    assert losses.pause_s(lost, now=50.0, jitter=0.0) == pytest.approx(0.1)
    assert losses.pause_s(lost, now=50.9, jitter=0.0) is None
    losses.contact()
    assert losses.pause_s(lost, now=60.0, jitter=0.0) == pytest.approx(0.1)


def test_without_patience_nothing_is_repeated() -> None:
    assert Losses(0.0).pause_s(failure(Code.UNAVAILABLE), now=5.0, jitter=1.0) is None


def test_a_refusal_is_no_loss_and_leaves_the_count() -> None:
    losses = Losses(10.0)
    assert losses.pause_s(failure(Code.NOT_FOUND, "RUN_NOT_FOUND"), now=5.0, jitter=0.0) is None
    assert losses.count == 0
