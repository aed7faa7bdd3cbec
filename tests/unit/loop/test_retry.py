"""Which failed model call is tried again (spec 04, section 5; issue: 3 times, 1 2 4 s, Retry-After up to 60 s)."""

import pytest

from lanewayd.errors import ErrorCode
from lanewayd.loop.retry import retry_delay_s
from lanewayd.messages import AssistantMessage, Reasoning, RunError, StopReason, Text
from lanewayd.providers.interface import Failed

RETRIED = [
    ErrorCode.PROVIDER_RATE_LIMITED,
    ErrorCode.PROVIDER_UNAVAILABLE,
    ErrorCode.PROVIDER_UNREACHABLE,
    ErrorCode.PROVIDER_STREAM_CUT,
]
FINAL = [
    ErrorCode.PROVIDER_AUTH,
    ErrorCode.PROVIDER_MODEL_NOT_FOUND,
    ErrorCode.PROVIDER_BILLING,
    ErrorCode.PROVIDER_REQUEST_REJECTED,
    ErrorCode.PROVIDER_BAD_RESPONSE,
    ErrorCode.PROVIDER_STALLED,
    ErrorCode.PROVIDER_REFUSED,
    ErrorCode.CONTEXT_OVERFLOW,
]


def failure(
    reason: ErrorCode = ErrorCode.PROVIDER_UNAVAILABLE,
    *,
    retry_after_s: float | None = None,
    is_transient: bool = True,
    partial: Text | Reasoning | None = None,
) -> Failed:
    content = () if partial is None else (partial,)
    message = AssistantMessage(content, "acme", "m", StopReason.ERROR)
    return Failed(RunError(reason.value, "no"), message, retry_after_s=retry_after_s, is_transient=is_transient)


@pytest.mark.parametrize(("tries", "delay_s"), [(1, 1.0), (2, 2.0), (3, 4.0), (4, None), (5, None)])
def test_three_retries_after_1_2_and_4_seconds(tries: int, delay_s: float | None) -> None:
    assert retry_delay_s(failure(), tries=tries) == delay_s


@pytest.mark.parametrize("reason", RETRIED)
def test_what_may_pass_is_tried_again_if_it_is_transient(reason: ErrorCode) -> None:
    assert retry_delay_s(failure(reason), tries=1) == 1.0
    assert retry_delay_s(failure(reason, is_transient=False), tries=1) is None


@pytest.mark.parametrize("reason", FINAL)
def test_what_will_not_pass_is_not_tried_again(reason: ErrorCode) -> None:
    assert retry_delay_s(failure(reason), tries=1) is None


@pytest.mark.parametrize(
    ("tries", "retry_after_s", "delay_s"),
    [(1, 0.0, 1.0), (1, 0.5, 1.0), (1, 3.0, 3.0), (3, 3.0, 4.0), (1, 60.0, 60.0), (1, 60.1, None), (1, 3600.0, None)],
)
def test_the_servers_retry_after_raises_the_wait_or_forbids_it(
    tries: int, retry_after_s: float, delay_s: float | None
) -> None:
    assert retry_delay_s(failure(retry_after_s=retry_after_s), tries=tries) == delay_s


@pytest.mark.parametrize("partial", [Text("a"), Reasoning("b")])
def test_a_cut_stream_is_not_tried_again_once_it_has_shown_something(partial: Text | Reasoning) -> None:
    assert retry_delay_s(failure(ErrorCode.PROVIDER_STREAM_CUT, partial=partial), tries=1) is None
    assert retry_delay_s(failure(ErrorCode.PROVIDER_STREAM_CUT), tries=1) == 1.0


def test_an_overloaded_server_is_tried_again_even_in_mid_stream() -> None:
    assert retry_delay_s(failure(ErrorCode.PROVIDER_UNAVAILABLE, partial=Text("a")), tries=1) == 1.0
