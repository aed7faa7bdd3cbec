"""Entry bodies: every message comes back as it was, as valid UTF-8."""

import json
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from lanewayd.messages import (
    AssistantMessage,
    Attachment,
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResultMessage,
    Usage,
    UserMessage,
    valid_text,
)
from lanewayd.records import Entry, EntryKind
from lanewayd.transcript.entries import (
    assistant_body,
    message_of,
    reset_body,
    tool_result_body,
    user_body,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(["\0", '"\\\n', "\u2028", "𝄞"])
WILD_TEXTS = st.text(st.characters() | st.sampled_from(["\ud800", "\udfff", "\0", "é"]), max_size=20)
COUNTS = st.integers(0, 10**12)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, st.booleans())


def blocks(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Text | Reasoning | ToolCall]:
    return st.one_of(
        st.builds(Text, texts, texts),
        st.builds(Reasoning, texts, texts, texts),
        st.builds(ToolCall, texts, texts, texts, texts),
    )


def messages(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Message]:
    contents = st.lists(blocks(texts), max_size=4).map(tuple)
    return st.one_of(
        st.builds(UserMessage, texts),
        st.builds(AssistantMessage, contents, texts, texts, st.sampled_from(StopReason), USAGES, texts),
        st.builds(ToolResultMessage, texts, texts, texts, st.booleans(), st.sampled_from(ToolOutcome)),
    )


def stored(message: Message) -> Entry:
    if isinstance(message, UserMessage):
        kind, body = EntryKind.USER, user_body(message)
    elif isinstance(message, AssistantMessage):
        kind, body = EntryKind.ASSISTANT, assistant_body(message, "msg_1")
    else:
        kind, body = EntryKind.TOOL_RESULT, tool_result_body(message)
    return Entry("e", "", "s", "r", NOW, kind, body)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(messages(TEXTS))
def test_a_message_comes_back_as_it_was(message: Message) -> None:
    assert message_of(stored(message)) == message


@settings(max_examples=200, deadline=None, derandomize=True)
@given(messages(WILD_TEXTS))
def test_whatever_a_message_holds_its_body_is_valid_utf8_and_stays_the_same_when_read(message: Message) -> None:
    entry = stored(message)
    entry.body_json.encode("utf-8")
    again = message_of(entry)
    assert again is not None
    assert message_of(stored(again)) == again


def test_a_lone_surrogate_becomes_the_replacement_character_and_a_pair_its_character() -> None:
    assert message_of(stored(UserMessage("a\ud800b"))) == UserMessage("a\ufffdb")
    assert message_of(stored(UserMessage("\ud83d\ude00"))) == UserMessage("😀")


def test_a_user_message_keeps_its_attachments() -> None:
    cat = Attachment("cat.png", "image/png", "ab" * 32, 70)
    message = UserMessage("look", (cat, Attachment("", "", "cd" * 32, 1)))
    assert message_of(stored(message)) == message


@settings(deadline=None, derandomize=True)
@given(WILD_TEXTS)
def test_valid_text_leaves_valid_text_alone(text: str) -> None:
    valid = valid_text(text)
    valid.encode("utf-8")
    assert valid_text(valid) is valid


def test_what_a_provider_wants_back_with_a_call_is_kept() -> None:
    call = ToolCall("c1", "read", "{}", signature="opaque")
    message = AssistantMessage((call,), "acme", "m", StopReason.TOOL_USE)
    assert message_of(stored(message)) == message


def test_a_body_has_the_shape_that_the_contract_shows() -> None:
    content = (Text("hi"), ToolCall("c1", "read", "{}"))
    message = AssistantMessage(content, "acme", "m", StopReason.TOOL_USE, Usage(1, 2))
    assert json.loads(stored(message).body_json) == {
        "message_id": "msg_1",
        "content": [
            {"type": "text", "text": "hi"},
            {"type": "tool_call", "call_id": "c1", "name": "read", "arguments_json": "{}"},
        ],
        "provider": "acme",
        "model": "m",
        "usage": {
            "input_tokens": 1,
            "output_tokens": 2,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "reasoning_tokens": 0,
            "unavailable": False,
        },
        "stop_reason": "tool_use",
        "provider_stop": "",
    }
    assert json.loads(user_body(UserMessage("hi"))) == {"content": [{"type": "text", "text": "hi"}]}
    assert json.loads(tool_result_body(ToolResultMessage("c1", "read", "x"))) == {
        "call_id": "c1",
        "name": "read",
        "content": [{"type": "text", "text": "x"}],
        "is_error": False,
        "outcome": "ok",
    }


def test_a_reset_is_no_message() -> None:
    entry = Entry("e", "", "s", "", NOW, EntryKind.RESET, reset_body())
    assert message_of(entry) is None
