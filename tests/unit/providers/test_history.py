"""providers/history.py: every call has exactly one result, right behind its message."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lanewayd.messages import (
    AssistantBlock,
    AssistantMessage,
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from lanewayd.providers.history import MISSING_RESULT, pair_calls_with_results


def answer(*call_ids: str, stop: StopReason = StopReason.TOOL_USE) -> AssistantMessage:
    return AssistantMessage(tuple(ToolCall(call_id, "rec", "{}") for call_id in call_ids), "p", "m", stop)


def result(call_id: str, text: str = "r") -> ToolResultMessage:
    return ToolResultMessage(call_id, "rec", text)


USER = UserMessage("u")


def test_a_paired_history_is_unchanged() -> None:
    history = (USER, answer("a", "b"), result("a"), result("b"), answer(stop=StopReason.STOP))
    assert pair_calls_with_results(history) == history


def test_results_come_in_the_order_of_their_calls_behind_their_message() -> None:
    history = (answer("a", "b"), USER, result("b"), result("a"))
    assert pair_calls_with_results(history) == (history[0], result("a"), result("b"), USER)


def test_a_missing_result_is_an_error_that_says_so() -> None:
    paired = pair_calls_with_results((answer("a"), USER))
    missing = paired[1]
    assert isinstance(missing, ToolResultMessage)
    assert (missing.call_id, missing.text, missing.is_error) == ("a", MISSING_RESULT, True)


def test_orphans_and_second_results_are_dropped() -> None:
    history = (result("x"), answer("a"), result("a", "first"), result("a", "second"), result("y"))
    assert pair_calls_with_results(history) == (answer("a"), result("a", "first"))


def test_equal_ids_in_different_answers_stay_apart() -> None:
    history = (answer("a"), result("a", "1"), answer("a"), result("a", "2"))
    assert pair_calls_with_results(history) == history


def test_a_displaced_result_that_two_calls_could_own_is_dropped() -> None:
    history = (answer("a"), answer("a"), answer(), result("a"))
    paired = pair_calls_with_results(history)
    assert [message.text for message in paired if isinstance(message, ToolResultMessage)] == [MISSING_RESULT] * 2


def test_failed_and_aborted_answers_are_left_out_with_their_results() -> None:
    failed = answer("a", stop=StopReason.ERROR)
    aborted = AssistantMessage((Text("half"),), "p", "m", StopReason.ABORTED)
    assert pair_calls_with_results((USER, failed, result("a"), aborted, USER)) == (USER, USER)


def test_an_answer_that_was_cut_off_while_thinking_is_left_out() -> None:
    thought = Reasoning("hm", "thinking", "sig")

    def cut(*blocks: AssistantBlock) -> AssistantMessage:
        return AssistantMessage(blocks, "p", "m", StopReason.LENGTH)

    assert pair_calls_with_results((USER, cut(thought), cut(thought, Text(" ")), USER)) == (USER, USER)
    said = (USER, cut(thought, Text("It is")), cut(Text("")), USER)
    assert pair_calls_with_results(said) == said


IDS = st.sampled_from("abc")
MESSAGES = st.one_of(
    st.builds(UserMessage, st.sampled_from("uv")),
    st.builds(lambda ids, stop: answer(*ids, stop=stop), st.lists(IDS, max_size=3), st.sampled_from(list(StopReason))),
    st.builds(result, IDS, st.sampled_from(["1", "2"])),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(MESSAGES, max_size=12))
def test_any_history_becomes_paired_and_stays_as_it_is(history: list[Message]) -> None:
    paired = pair_calls_with_results(history)
    assert pair_calls_with_results(paired) == paired
    expected: list[str] = []
    for message in paired:
        if isinstance(message, ToolResultMessage):
            assert expected.pop(0) == message.call_id
            continue
        assert not expected
        if isinstance(message, AssistantMessage):
            assert message.stop_reason not in (StopReason.ERROR, StopReason.ABORTED)
            expected = [call.call_id for call in message.tool_calls]
    assert not expected
    kept = [message for message in history if isinstance(message, UserMessage)]
    assert [message for message in paired if isinstance(message, UserMessage)] == kept
