"""What a failed call leads to: each row of spec 04, 6, and of the retry table of 05, 5."""

from typing import Any

import pytest

from lanewayd.messages import FailureClass, ThinkingLevel
from lanewayd.models.failover import (
    Counts,
    Failure,
    Move,
    Options,
    Stage,
    Step,
    attempts_cap,
    limit_delay_s,
    next_step,
    round_delay_s,
    tells_of_credential,
)

K, P, A = FailureClass, Stage.PROMPT, Stage.ASSISTANT
LIMIT = FailureClass.RATE_LIMIT
EVERYTHING = Options(can_rotate=True, can_refresh=True, has_fallback=True, has_next=True)
FALLBACK = Options(has_fallback=True, has_next=True)
NOTHING = Options()
WORTHY = [
    K.AUTH,
    K.AUTH_PERMANENT,
    K.BILLING,
    K.RATE_LIMIT,
    K.OVERLOADED,
    K.SERVER_ERROR,
    K.TIMEOUT,
    K.MODEL_NOT_FOUND,
    K.SESSION_EXPIRED,
    K.NO_ERROR_DETAILS,
    K.UNCLASSIFIED,
    K.EMPTY_RESPONSE,
    K.UNKNOWN,
]


def step(kind: FailureClass, options: Options = NOTHING, counts: Counts | None = None, **failure: Any) -> Step:
    """The step after a failure of this class; the first of its model unless `counts` says more."""
    return next_step(Failure(kind, **failure), counts or Counts(attempts=1), options)


def move(kind: FailureClass, options: Options = NOTHING, counts: Counts | None = None, **failure: Any) -> Move:
    return step(kind, options, counts, **failure).move


@pytest.mark.parametrize("stage", [P, A])
def test_a_request_of_a_wrong_shape_and_an_overflow_surface(stage: Stage) -> None:
    assert move(K.FORMAT, EVERYTHING, stage=stage) is Move.SURFACE
    assert move(K.CONTEXT_OVERFLOW, EVERYTHING, stage=stage) is Move.SURFACE


@pytest.mark.parametrize("stage", [P, A])
def test_a_refusal_goes_to_the_next_model_if_nothing_visible_was_shown(stage: Stage) -> None:
    assert move(K.REFUSAL, EVERYTHING, stage=stage) is Move.NEXT_MODEL
    assert move(K.REFUSAL, EVERYTHING, stage=stage, has_content=True) is Move.NEXT_MODEL
    assert move(K.REFUSAL, EVERYTHING, stage=stage, has_text=True) is Move.SURFACE
    assert move(K.REFUSAL, Options(can_rotate=True), stage=stage) is Move.SURFACE


@pytest.mark.parametrize("kind", [kind for kind in WORTHY if kind is not K.AUTH])
def test_another_credential_is_taken_first_but_for_timeouts_of_the_request(kind: FailureClass) -> None:
    assert move(kind, EVERYTHING, stage=P) is (Move.NEXT_MODEL if kind is K.TIMEOUT else Move.ROTATE)
    assert move(kind, EVERYTHING, stage=A, has_text=True) is Move.ROTATE


@pytest.mark.parametrize("kind", WORTHY)
def test_without_another_credential_the_next_model_is_called_and_without_one_it_surfaces(kind: FailureClass) -> None:
    assert move(kind, FALLBACK, stage=P) is Move.NEXT_MODEL
    assert move(kind, FALLBACK, stage=A, has_text=True) is Move.NEXT_MODEL
    assert move(kind, stage=P) is Move.SURFACE
    assert move(kind, Options(has_fallback=True), stage=A, has_text=True) is Move.SURFACE


@pytest.mark.parametrize("kind", WORTHY)
def test_at_the_cap_of_attempts_only_some_failures_go_on_to_the_next_model(kind: FailureClass) -> None:
    goes_on = kind not in (K.TIMEOUT, K.FORMAT, K.SESSION_EXPIRED)
    at_cap = Counts(attempts=32)
    assert move(kind, EVERYTHING, at_cap) is (Move.NEXT_MODEL if goes_on else Move.SURFACE)
    assert move(kind, Options(can_rotate=True), at_cap, is_transient=True) is Move.SURFACE
    assert move(kind, EVERYTHING, Counts(attempts=31), stage=A, has_text=True) in (Move.ROTATE, Move.REFRESH)


@pytest.mark.parametrize(("profiles", "cap"), [(1, 32), (2, 40), (5, 64), (17, 160), (100, 160)])
def test_the_cap_of_attempts_grows_with_the_credentials(profiles: int, cap: int) -> None:
    assert attempts_cap(profiles) == cap


@pytest.mark.parametrize("kind", [K.OVERLOADED, LIMIT])
def test_overload_and_a_long_limit_rotate_once(kind: FailureClass) -> None:
    once = Counts(attempts=2).moved(Move.ROTATE, kind)
    assert move(kind, EVERYTHING, once) is Move.NEXT_MODEL
    assert move(K.BILLING, EVERYTHING, once) is Move.ROTATE
    assert move(K.AUTH_PERMANENT, EVERYTHING, once.moved(Move.ROTATE, K.AUTH_PERMANENT)) is Move.ROTATE


@pytest.mark.parametrize(
    ("retries", "retry_after_s", "delay_s"),
    [(0, None, 10), (1, None, 20), (2, None, 30), (9, None, 60), (0, 25.0, 25), (2, 5.0, 30), (0, 60.0, 60)],
)
def test_waits_for_a_rate_limit_grow_and_end_at_a_minute(
    retries: int, retry_after_s: float | None, delay_s: float
) -> None:
    assert limit_delay_s(retries, retry_after_s) == delay_s
    assert limit_delay_s(0, 600.0) == 60


def test_a_short_rate_limit_is_waited_for_three_times_in_a_row_before_anything_else() -> None:
    counts = Counts()
    for delay_s in (10, 20, 30):
        counts = counts.failed(Failure(LIMIT))
        assert step(LIMIT, EVERYTHING, counts, is_transient=True) == Step(Move.WAIT_FOR_LIMIT, delay_s)
        counts = counts.moved(Move.WAIT_FOR_LIMIT, LIMIT)
    assert move(LIMIT, EVERYTHING, counts, is_transient=True) is Move.ROTATE
    assert move(LIMIT, NOTHING, counts, is_transient=True) is Move.SURFACE


def test_a_long_rate_limit_is_not_waited_for() -> None:
    assert move(LIMIT, EVERYTHING) is Move.ROTATE
    assert move(LIMIT, NOTHING) is Move.SURFACE
    assert move(LIMIT, NOTHING, is_transient=True, retry_after_s=60.1) is Move.SURFACE


def test_after_a_rotation_for_a_limit_there_is_no_more_waiting_for_one() -> None:
    rotated = Counts(attempts=1).moved(Move.ROTATE, LIMIT)
    assert move(LIMIT, FALLBACK, rotated, is_transient=True) is Move.NEXT_MODEL


@pytest.mark.parametrize("other", [Move.BACK_OFF, Move.AGAIN_AFTER_SILENCE, Move.AGAIN_AFTER_IDLE, Move.REFRESH])
def test_the_count_of_waits_begins_anew_after_any_other_retry(other: Move) -> None:
    waited = Counts().moved(Move.WAIT_FOR_LIMIT, LIMIT).moved(Move.WAIT_FOR_LIMIT, LIMIT)
    assert waited.limits == 2
    assert waited.moved(other, K.TIMEOUT).limits == 0


def test_an_idle_timeout_is_tried_again_once_without_a_chain_and_if_nothing_was_shown() -> None:
    assert move(K.TIMEOUT, stage=A, is_idle=True) is Move.AGAIN_AFTER_IDLE
    assert move(K.TIMEOUT, NOTHING, Counts(attempts=2, idle=1), stage=A, is_idle=True) is Move.SURFACE
    assert move(K.TIMEOUT, stage=A, is_idle=True, has_content=True) is Move.SURFACE
    assert move(K.TIMEOUT, FALLBACK, stage=A, is_idle=True) is Move.NEXT_MODEL
    assert move(K.TIMEOUT, Options(has_fallback=True), stage=A, is_idle=True) is Move.SURFACE


def test_five_idle_timeouts_in_a_row_end_the_run_whatever_is_left() -> None:
    idle = Failure(K.TIMEOUT, A, is_idle=True)
    counts = Counts()
    for _ in range(4):
        counts = counts.failed(idle)
        assert next_step(idle, counts, EVERYTHING).move is Move.ROTATE
        counts = counts.moved(Move.ROTATE, K.TIMEOUT).moved(Move.NEXT_MODEL, K.TIMEOUT)
    assert next_step(idle, counts.failed(idle), EVERYTHING).move is Move.SURFACE
    assert next_step(idle, counts.answered().failed(idle), EVERYTHING).move is Move.ROTATE


@pytest.mark.parametrize("kind", [K.UNKNOWN, K.UNCLASSIFIED, K.NO_ERROR_DETAILS, K.SERVER_ERROR])
def test_a_silent_error_is_tried_again_three_times(kind: FailureClass) -> None:
    for silent, delay_s in enumerate((1.0, 2.0, 4.0)):
        counts = Counts(attempts=silent + 1, silent=silent)
        assert step(kind, EVERYTHING, counts, stage=A) == Step(Move.AGAIN_AFTER_SILENCE, delay_s)
    used_up = Counts(attempts=4, silent=3)
    assert move(kind, EVERYTHING, used_up, stage=A) is Move.ROTATE
    assert move(kind, NOTHING, used_up, stage=A, is_transient=True) is Move.SURFACE


def test_a_silent_error_is_not_tried_again_after_side_effects_or_visible_text() -> None:
    assert move(K.UNCLASSIFIED, Options(is_replay_safe=False), stage=A) is Move.SURFACE
    assert move(K.UNCLASSIFIED, stage=A, has_text=True) is Move.SURFACE
    assert move(K.UNCLASSIFIED, stage=P) is Move.SURFACE
    assert move(K.TIMEOUT, stage=A) is Move.SURFACE
    assert move(K.UNCLASSIFIED, stage=A, has_content=True) is Move.AGAIN_AFTER_SILENCE


def test_a_call_without_outcome_is_made_again_once_unless_there_were_side_effects() -> None:
    assert move(K.EMPTY_RESPONSE, EVERYTHING, is_missing=True) is Move.AGAIN_AFTER_NOTHING
    again = Counts(attempts=2, missing=1)
    assert move(K.EMPTY_RESPONSE, NOTHING, again, is_missing=True) is Move.SURFACE
    assert move(K.EMPTY_RESPONSE, Options(is_replay_safe=False), is_missing=True) is Move.SURFACE


def test_a_refused_credential_is_read_anew_once_before_another_is_taken() -> None:
    assert move(K.AUTH, EVERYTHING) is Move.REFRESH
    refreshed = Counts(attempts=1).moved(Move.REFRESH, K.AUTH)
    assert move(K.AUTH, EVERYTHING, refreshed) is Move.ROTATE
    assert move(K.AUTH, EVERYTHING, refreshed.moved(Move.ROTATE, K.AUTH)) is Move.REFRESH
    assert move(K.AUTH_PERMANENT, EVERYTHING) is Move.ROTATE


def test_a_refused_level_is_replaced_while_one_is_left() -> None:
    lower = Options(lower_level=ThinkingLevel.LOW, can_rotate=True, has_next=True)
    assert move(K.FORMAT, lower) is Move.LOWER_THINKING
    assert move(K.FORMAT, EVERYTHING) is Move.SURFACE


def test_a_fault_that_passes_is_waited_for_when_nothing_else_is_left() -> None:
    for backoffs, delay_s in enumerate((1.0, 2.0, 4.0)):
        counts = Counts(attempts=backoffs + 1, backoffs=backoffs)
        assert step(K.OVERLOADED, NOTHING, counts, is_transient=True) == Step(Move.BACK_OFF, delay_s)
    assert move(K.OVERLOADED, NOTHING, Counts(attempts=4, backoffs=3), is_transient=True) is Move.SURFACE
    assert move(K.TIMEOUT, FALLBACK, is_transient=True) is Move.NEXT_MODEL
    assert move(K.TIMEOUT, NOTHING) is Move.SURFACE


@pytest.mark.parametrize(
    ("retry_after_s", "expected"),
    [
        (0.0, Step(Move.BACK_OFF, 1.0)),
        (3.0, Step(Move.BACK_OFF, 3.0)),
        (60.0, Step(Move.BACK_OFF, 60.0)),
        (60.1, Step(Move.SURFACE)),
    ],
)
def test_the_servers_retry_after_raises_the_wait_or_forbids_it(retry_after_s: float, expected: Step) -> None:
    assert step(K.TIMEOUT, is_transient=True, retry_after_s=retry_after_s) == expected


def test_a_cut_answer_is_asked_for_again_only_if_it_had_shown_nothing() -> None:
    assert move(K.TIMEOUT, stage=A, is_cut=True, is_transient=True) is Move.BACK_OFF
    assert move(K.TIMEOUT, stage=A, is_cut=True, is_transient=True, has_content=True) is Move.SURFACE
    assert move(K.OVERLOADED, stage=A, is_transient=True, has_text=True) is Move.BACK_OFF


def test_a_chain_of_overloaded_models_is_called_again_ten_times() -> None:
    all_overloaded = Options(has_fallback=True, all_overloaded=True)
    delays_s = [
        step(K.OVERLOADED, all_overloaded, Counts(attempts=1, rounds=rounds), is_transient=True).delay_s
        for rounds in range(10)
    ]
    assert delays_s == [2.5, 5, 10, 20, 30, 30, 30, 30, 30, 30]
    assert delays_s == [round_delay_s(rounds) for rounds in range(10)]
    assert move(K.OVERLOADED, all_overloaded, Counts(attempts=1, rounds=10)) is Move.SURFACE
    had_output = Options(has_fallback=True, all_overloaded=True, has_output=True)
    assert move(K.OVERLOADED, had_output) is Move.SURFACE
    assert move(K.OVERLOADED, Options(all_overloaded=True), is_transient=True) is Move.BACK_OFF
    assert move(K.OVERLOADED, Options(has_fallback=True)) is Move.SURFACE


def test_counts_of_a_model_begin_anew_with_the_next_one_but_for_what_is_of_the_run() -> None:
    counts = Counts(attempts=5, idle_in_a_row=2, limits=1, backoffs=3, silent=2, rounds=1)
    assert counts.moved(Move.NEXT_MODEL, K.TIMEOUT) == Counts(idle_in_a_row=2, rounds=1)
    assert counts.moved(Move.REPEAT_CHAIN, K.OVERLOADED) == Counts(idle_in_a_row=2, rounds=2)
    assert counts.answered() == Counts(attempts=5)
    assert counts.moved(Move.SURFACE, K.TIMEOUT).attempts == counts.moved(Move.LOWER_THINKING, K.FORMAT).attempts == 5


@pytest.mark.parametrize("kind", list(FailureClass))
def test_health_hears_of_what_a_credential_may_be_the_reason_for(kind: FailureClass) -> None:
    silent = {
        K.FORMAT,
        K.CONTEXT_OVERFLOW,
        K.REFUSAL,
        K.MODEL_NOT_FOUND,
        K.SESSION_EXPIRED,
        K.EMPTY_RESPONSE,
    }
    failure = Failure(kind)
    assert tells_of_credential(failure, Step(Move.ROTATE), has_connected=True) is (kind not in silent)
    assert not tells_of_credential(failure, Step(Move.SURFACE), has_connected=False)
    for again in (Move.WAIT_FOR_LIMIT, Move.BACK_OFF, Move.REFRESH, Move.AGAIN_AFTER_SILENCE):
        assert not tells_of_credential(failure, Step(again), has_connected=True)
