"""Where a run stands in its session's transcript: every tail that recovery can find (D-2)."""

from datetime import UTC, datetime
from itertools import count

import pytest

from lanewayd.messages import (
    AssistantMessage,
    Message,
    StopReason,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from lanewayd.records import Entry, EntryKind
from lanewayd.transcript.context import standing_of
from lanewayd.transcript.entries import assistant_body, reset_body, tool_result_body, user_body

NOW = datetime(2026, 1, 1, tzinfo=UTC)
USAGE = Usage(10, 5)
CALLS = (ToolCall("c1", "read", "{}"), ToolCall("c2", "exec", '{"command":"ls"}'))

USER = UserMessage("hi")
ASKS = AssistantMessage((Text("let me see"), *CALLS), "acme", "m", StopReason.TOOL_USE, USAGE)
RESULTS = (ToolResultMessage("c1", "read", "a"), ToolResultMessage("c2", "exec", "b", True, ToolOutcome.ERROR))
ANSWER = AssistantMessage((Text("done"),), "acme", "m", StopReason.STOP, USAGE)
CUT = AssistantMessage((Text("so fa"),), "acme", "m", StopReason.LENGTH, USAGE)
NO_CALLS = AssistantMessage((Text("hm"),), "acme", "m", StopReason.TOOL_USE, USAGE)
BROKEN = AssistantMessage((Text("so f"),), "acme", "m", StopReason.ERROR)
STOPPED = AssistantMessage((Text("so f"),), "acme", "m", StopReason.ABORTED)
CALLS_CUT = AssistantMessage((Text("let me"), CALLS[0]), "acme", "m", StopReason.LENGTH, USAGE)


def entry(number: int, run_id: str, message: Message) -> Entry:
    if isinstance(message, UserMessage):
        kind, body = EntryKind.USER, user_body(message)
    elif isinstance(message, AssistantMessage):
        kind, body = EntryKind.ASSISTANT, assistant_body(message, f"msg_{number}")
    else:
        kind, body = EntryKind.TOOL_RESULT, tool_result_body(message)
    return Entry(f"e{number}", "", "s", run_id, NOW, kind, body)


def entries(run_id: str, *messages: Message) -> list[Entry]:
    numbers = count(1)
    return [entry(next(numbers), run_id, message) for message in messages]


def test_nothing_of_the_run_means_it_has_not_started() -> None:
    standing = standing_of(entries("other", USER, ANSWER), "run")
    assert (standing.turns, standing.usage) == (0, Usage())
    assert (standing.unsettled, standing.final, standing.last_message) == ((), None, None)
    assert standing.messages == (USER, ANSWER)


def test_after_the_user_turn_comes_the_first_model_call() -> None:
    standing = standing_of(entries("run", USER), "run")
    assert (standing.turns, standing.unsettled, standing.final) == (0, (), None)


def test_calls_without_results_are_unsettled() -> None:
    standing = standing_of(entries("run", USER, ASKS), "run")
    assert (standing.unsettled, standing.unsettled_entry_id) == (CALLS, "e2")
    assert (standing.final, standing.turns, standing.usage, standing.last_message) == (None, 1, USAGE, ASKS)


def test_after_the_results_comes_the_next_model_call() -> None:
    standing = standing_of(entries("run", USER, ASKS, *RESULTS), "run")
    assert (standing.unsettled, standing.final, standing.turns, standing.last_message) == ((), None, 1, ASKS)
    assert standing.messages == (USER, ASKS, *RESULTS)


@pytest.mark.parametrize("answer", [ANSWER, CUT, NO_CALLS], ids=["stop", "length", "tool use without calls"])
def test_an_answer_without_calls_is_final(answer: AssistantMessage) -> None:
    standing = standing_of(entries("run", USER, ASKS, *RESULTS, answer), "run")
    assert (standing.final, standing.unsettled) == (answer, ())
    assert (standing.turns, standing.usage) == (2, USAGE + USAGE)


@pytest.mark.parametrize("broken", [BROKEN, STOPPED])
def test_an_answer_that_failed_is_not_final(broken: AssistantMessage) -> None:
    standing = standing_of(entries("run", USER, broken), "run")
    assert (standing.final, standing.unsettled, standing.last_message) == (None, (), broken)


def test_calls_of_an_answer_that_was_cut_are_not_to_be_run() -> None:
    standing = standing_of(entries("run", USER, CALLS_CUT), "run")
    assert standing.unsettled == ()
    assert standing.final == CALLS_CUT


def test_what_other_runs_said_is_seen_but_does_not_count() -> None:
    earlier = entries("earlier", USER, ASKS, *RESULTS, ANSWER)
    standing = standing_of([*earlier, *entries("run", UserMessage("and now?"))], "run")
    assert (standing.turns, standing.usage, standing.final, standing.last_message) == (0, Usage(), None, None)
    assert len(standing.messages) == 6


def test_a_reset_is_no_message() -> None:
    reset = Entry("r", "", "s", "", NOW, EntryKind.RESET, reset_body())
    assert standing_of([reset, *entries("run", USER)], "run").messages == (USER,)
