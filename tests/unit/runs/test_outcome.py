"""An outcome as row and terminal event: the table of CONTRACT, Outcomes."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lanewayd.events import LifecyclePhase
from lanewayd.messages import AssistantMessage, Reasoning, RunError, StopReason, Text, Usage
from lanewayd.records import Disposition, Priority, Run, RunRequest, RunState
from lanewayd.runs.outcome import (
    MAX_TEXT_BYTES,
    Outcome,
    aborted,
    deadline_passed,
    end_of,
    failed,
    failed_inside,
    finished,
    recovery_exhausted,
    terminal_of,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = RunRequest("hi", "main", "", Priority.FOREGROUND, "acme/m", 60)
RUN = Run(
    "run_1",
    1,
    "default",
    "agent:main:main",
    "s",
    REQUEST,
    RunState.RUNNING,
    Disposition.STARTED,
    0,
    NOW,
    started_at=NOW,
    attempt=2,
)
ERROR = RunError("PROVIDER_AUTH", "the key was refused")


def answer(text: str = "hello", stop: StopReason = StopReason.STOP, provider_stop: str = "") -> AssistantMessage:
    return AssistantMessage((Reasoning("hm"), Text(text)), "acme", "m", stop, Usage(10, 5), provider_stop)


@pytest.mark.parametrize(
    ("outcome", "state", "phase", "is_cancelled", "stop_reason", "reason"),
    [
        (finished(answer(), REQUEST), RunState.SUCCEEDED, LifecyclePhase.END, False, "stop", ""),
        (
            finished(answer(stop=StopReason.LENGTH), REQUEST),
            RunState.SUCCEEDED,
            LifecyclePhase.END,
            False,
            "length",
            "",
        ),
        (failed(ERROR), RunState.FAILED, LifecyclePhase.ERROR, False, "error", "PROVIDER_AUTH"),
        (failed_inside(), RunState.FAILED, LifecyclePhase.ERROR, False, "error", "INTERNAL"),
        (recovery_exhausted(3), RunState.FAILED, LifecyclePhase.ERROR, False, "error", "RECOVERY_EXHAUSTED"),
        (aborted("rpc"), RunState.CANCELLED, LifecyclePhase.END, True, "rpc", ""),
        (aborted("deleted"), RunState.CANCELLED, LifecyclePhase.END, True, "deleted", ""),
        (deadline_passed(5), RunState.TIMED_OUT, LifecyclePhase.ERROR, False, "deadline", "RUN_DEADLINE"),
    ],
    ids=["finished", "by length", "failed", "fault of ours", "recovery exhausted", "aborted", "deleted", "deadline"],
)
def test_row_and_terminal_event_say_the_same(
    outcome: Outcome, state: RunState, phase: LifecyclePhase, is_cancelled: bool, stop_reason: str, reason: str
) -> None:
    end, terminal = end_of(outcome, NOW), terminal_of(outcome, RUN, NOW)
    assert (end.state, terminal.state) == (state, state.value)
    assert (terminal.phase, terminal.cancelled, terminal.is_terminal) == (phase, is_cancelled, True)
    assert (end.stop_reason, terminal.stop_reason) == (stop_reason, stop_reason)
    assert end.error == terminal.error
    assert (end.error.reason if end.error is not None else "") == reason
    assert (end.ended_at, terminal.ended_at, terminal.started_at, terminal.attempt) == (NOW, NOW, NOW, 2)
    assert end.usage == terminal.usage


def test_an_answer_brings_its_text_usage_and_context_into_the_row() -> None:
    end = end_of(replace(finished(answer("done"), REQUEST), usage=Usage(100, 50)), NOW)
    assert [payload.text for payload in end.payloads] == ["done"]
    assert (end.usage, end.context_tokens, end.truncated) == (Usage(100, 50), 10, False)


@pytest.mark.parametrize(
    ("reasoning", "thinking", "is_shown"),
    [
        ("on", "", True),
        ("on", "high", True),
        ("on", "off", False),
        ("off", "", False),
        ("stream", "", False),
        ("", "", False),
    ],
)
def test_a_result_has_the_reasoning_where_it_is_asked_for_and_the_model_may_think(
    reasoning: str, thinking: str, is_shown: bool
) -> None:
    """Spec 08, 2.1: a payload of its own before the answer, marked (R-8.9, R-8.11)."""
    request = replace(REQUEST, reasoning=reasoning, thinking=thinking)
    payloads = [
        (payload.text, payload.is_reasoning) for payload in end_of(finished(answer("done"), request), NOW).payloads
    ]
    assert payloads == [*([("hm", True)] if is_shown else []), ("done", False)]


def test_an_answer_cut_by_its_length_is_truncated() -> None:
    assert end_of(finished(answer(stop=StopReason.LENGTH), REQUEST), NOW).truncated


def test_the_models_own_word_is_the_stop_reason() -> None:
    assert finished(answer(provider_stop="eos"), REQUEST).stop_reason == "eos"


def test_unknown_usage_leaves_the_context_size_as_it_is() -> None:
    message = replace(answer(), usage=Usage(unavailable=True))
    assert end_of(finished(message, REQUEST), NOW).context_tokens is None


def test_a_failed_run_shows_its_text_and_then_the_error() -> None:
    end = end_of(replace(failed(ERROR), text="so far"), NOW)
    assert [(payload.text, payload.is_error) for payload in end.payloads] == [
        ("so far", False),
        ("the key was refused", True),
    ]


@pytest.mark.parametrize("outcome", [aborted("rpc"), deadline_passed(5)])
def test_a_stopped_run_shows_its_text_without_an_error_payload(outcome: Outcome) -> None:
    assert [payload.text for payload in end_of(replace(outcome, text="so far"), NOW).payloads] == ["so far"]
    assert end_of(outcome, NOW).payloads == ()


def test_a_long_text_is_cut_and_says_how_long_it_was() -> None:
    text = "x" * (MAX_TEXT_BYTES - 1) + "é"
    [payload] = end_of(finished(answer(text), REQUEST), NOW).payloads
    assert (payload.text, payload.truncated, payload.total_bytes) == (text[:-1], True, MAX_TEXT_BYTES + 1)


def test_what_the_errors_say_helps() -> None:
    for outcome, what in ((deadline_passed(5), "5 s"), (recovery_exhausted(3), "3 times"), (failed_inside(), "log")):
        assert outcome.error is not None
        assert what in outcome.error.message
