import io
from typing import Any

import pytest
from rich.console import Console
from tests.unit.cli.fake_service import event, message, terminal, text, usual_run

from laneway.cli.render import RunView
from laneway.v1 import event_pb2, run_pb2


def shown(*events: event_pb2.Event, **console: Any) -> str:
    output = io.StringIO()
    view = RunView(Console(file=output, width=40, highlight=False, **console))
    for each in events:
        view.show(each)
    return output.getvalue()


def lifecycle(seq: int, phase: event_pb2.LifecyclePhase, **fields: Any) -> event_pb2.Event:
    return event(seq, lifecycle=event_pb2.LifecycleEvent(phase=phase, **fields))


def test_a_run_is_shown_as_it_happens() -> None:
    assert shown(*usual_run()) == (
        "Let me look.\n"
        "> read path=notes.txt\n"
        "< read ok in 12 ms\n"
        "    first line\n"
        "    second line\n"
        "It says: first line\n"
        "= succeeded | stop | 20 tokens in, 7 out\n"
    )


def test_each_delta_is_written_at_once() -> None:
    output = io.StringIO()
    view = RunView(Console(file=output))
    view.show(text(1, "half a li"))
    assert output.getvalue() == "half a li"


def test_without_a_terminal_there_are_no_escapes_and_no_broken_lines() -> None:
    long = "word [bold]x[/bold] :smile: " * 10
    output = shown(text(1, long), message(2, long))
    assert output == long + "\n"


def test_a_terminal_gets_colours() -> None:
    assert "\x1b[" in shown(*usual_run(), force_terminal=True)


def test_what_a_model_writes_cannot_control_the_terminal() -> None:
    call = event_pb2.ToolEvent(phase=event_pb2.TOOL_PHASE_START, name="r\x1b[2J", arguments_json='{"a":"\\u001b[2J"}')
    assert "\x1b" not in shown(text(1, "\x1b[2J"), event(2, tool=call))


def test_a_message_without_deltas_is_shown_whole() -> None:
    assert shown(message(1, "whole")) == "whole\n"


def test_a_message_with_deltas_is_not_shown_twice() -> None:
    assert shown(text(1, "once"), message(2, "once")) == "once\n"


def test_a_message_of_tool_calls_only_leaves_no_line() -> None:
    assert shown(message(1, "")) == ""


def test_a_cut_message_says_where_the_rest_is() -> None:
    cut = message(1, "begin")
    cut.message.truncated, cut.message.total_bytes = True, 5_000_000
    assert "[the text is cut: 5000000 bytes, whole in entry e]" in shown(cut)


def test_a_retry_marks_the_void_text() -> None:
    retry = lifecycle(
        3,
        event_pb2.LIFECYCLE_PHASE_RETRY,
        attempt=2,
        void_message_id="m1",
        error=run_pb2.RunError(reason="PROVIDER_STREAM_CUT", message="cut", provider="acme", model="x"),
    )
    retry.lifecycle.delay.seconds = 2
    output = shown(text(1, "The wea"), retry, text(4, "The weather", "m2"), message(5, "The weather", "m2"))
    assert output == (
        "The wea\n! PROVIDER_STREAM_CUT: cut (acme/x); try 2 in 2.0 s\n  void, comes again: ~~The wea~~\nThe weather\n"
    )


def test_a_retry_before_any_text_voids_nothing() -> None:
    retry = lifecycle(1, event_pb2.LIFECYCLE_PHASE_RETRY, attempt=2, void_message_id="m1")
    assert "void" not in shown(retry)


def test_a_retry_without_a_wait_names_none() -> None:
    retry = lifecycle(1, event_pb2.LIFECYCLE_PHASE_RETRY, attempt=2)
    retry.lifecycle.delay.seconds = 0
    assert shown(retry).endswith("; try 2\n")


def test_a_model_that_takes_over_is_named_with_the_reason_and_voids_the_text() -> None:
    fallback = lifecycle(
        2,
        event_pb2.LIFECYCLE_PHASE_FALLBACK,
        void_message_id="m1",
        provider="other",
        model="y",
        error=run_pb2.RunError(reason="PROVIDER_RATE_LIMITED", message="slow down", provider="acme", model="x"),
    )
    assert shown(text(1, "Half"), fallback) == (
        "Half\n! PROVIDER_RATE_LIMITED: slow down (acme/x); other/y takes over\n  void, comes again: ~~Half~~\n"
    )


def test_the_selected_model_that_is_back_is_named() -> None:
    cleared = lifecycle(2, event_pb2.LIFECYCLE_PHASE_FALLBACK_CLEARED, provider="acme", model="x")
    assert shown(cleared) == "! acme/x answers again\n"


def test_a_recovery_marks_the_void_text() -> None:
    recovered = lifecycle(2, event_pb2.LIFECYCLE_PHASE_RECOVERED, attempt=2, void_message_id="m1")
    output = shown(text(1, "Half"), recovered)
    assert output == "Half\n! the server was restarted and goes on with this run\n  void, comes again: ~~Half~~\n"


def test_void_text_is_struck_on_a_terminal() -> None:
    recovered = lifecycle(2, event_pb2.LIFECYCLE_PHASE_RECOVERED, void_message_id="m1")
    assert "\x1b[2;9m" in shown(text(1, "Half"), recovered, force_terminal=True)


def test_reasoning_is_told_apart_from_the_answer() -> None:
    thought = event(1, reasoning=event_pb2.ReasoningEvent(message_id="m1", delta="hm"))
    more = event(2, reasoning=event_pb2.ReasoningEvent(message_id="m1", delta=" yes"))
    assert shown(thought, more, text(3, "Answer")) == "(thinking) hm yes\nAnswer"


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (event_pb2.TOOL_OUTCOME_ERROR, "error"),
        (event_pb2.TOOL_OUTCOME_BLOCKED, "blocked"),
        (event_pb2.TOOL_OUTCOME_SKIPPED, "skipped"),
        (event_pb2.TOOL_OUTCOME_ABORTED, "aborted"),
        (event_pb2.TOOL_OUTCOME_UNKNOWN, "outcome unknown"),
    ],
)
def test_every_outcome_of_a_tool_has_its_word(outcome: event_pb2.ToolOutcome, word: str) -> None:
    result = event_pb2.ToolEvent(phase=event_pb2.TOOL_PHASE_RESULT, name="exec", outcome=outcome)
    assert shown(event(1, tool=result)).startswith(f"< exec {word}")


def test_a_failed_run_says_why() -> None:
    error = run_pb2.RunError(reason="PROVIDER_AUTH", message="bad key", provider="openai", model="m", http_status=401)
    output = shown(terminal(1, run_pb2.RUN_STATE_FAILED, stop_reason="error", error=error))
    assert output == "= failed\n  PROVIDER_AUTH: bad key (openai/m, HTTP 401)\n"


def test_a_cancelled_run_says_by_what_and_how_long_it_ran() -> None:
    end = terminal(1, run_pb2.RUN_STATE_CANCELLED, cancelled=True, stop_reason="rpc")
    end.lifecycle.started_at.seconds, end.lifecycle.ended_at.seconds = 100, 165
    assert shown(end) == "= cancelled | rpc | 1 min 5 s\n"


def test_a_waiting_message_says_how_many_are_ahead() -> None:
    queued = event(1, queue=event_pb2.QueueEvent(phase=event_pb2.QUEUE_PHASE_QUEUED, position=2))
    assert shown(queued) == "waiting: 2 queued before it\n"


def test_what_the_user_said_is_not_repeated() -> None:
    said = message(1, "my question")
    said.message.role = "user"
    assert shown(said) == ""


def test_unknown_events_are_passed_over() -> None:
    assert shown(event(1), event(2, item=event_pb2.ItemEvent())) == ""
