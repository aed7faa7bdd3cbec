"""Answers for the tests of all encoders; and generated transcripts with everything that can be wrong with one.

Few ids and names on purpose, so that results miss their calls, come twice or too late, and ids come again in other
turns. Some turns are healthy, so that repairs meet what needs none.
"""

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from lanewayd.messages import (
    AssistantMessage,
    Attachment,
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

MODEL = "m1"
PROVIDER = "acme"
IMAGES = {"cat": b"\x89PNG", "dog": b"\xff\xd8", "empty": b""}
TEXTS = st.sampled_from(["", " \n", "hi", "ä\u2028\ud83d", 'q"\\\x00', "c2ln"]) | st.text(
    st.characters(codec=None), max_size=8
)
CALL_IDS = st.sampled_from(["", " ", "a", "a b", "a_", "x" * 70, "call_1", "call_0"])
ARGUMENTS = st.sampled_from(["{}", '{"a": 1e3}', '{"b": "\\ud83d"}', "", " ", "nope", "[1]", '{"a":', '{"a":NaN}'])
FIELDS = st.sampled_from(["", "thought", "thinking", "reasoning", "reasoning_content", "redacted_thinking"])
_SIGNED = st.builds(
    lambda **item: json.dumps(item),
    type=st.sampled_from(["reasoning", "message", "function_call", "thinking", "reasoning.encrypted"]),
    id=st.sampled_from(["i1", ""]),
    phase=st.sampled_from(["commentary", ""]),
    encrypted_content=st.sampled_from(["b3A", ""]),
)
SIGNATURES = st.sampled_from(["", "c2ln", "ü===", "\ud800", "[1]", "{"]) | _SIGNED
BLOCKS = st.one_of(
    st.builds(Text, TEXTS, SIGNATURES),
    st.builds(Reasoning, TEXTS, FIELDS, SIGNATURES),
    st.builds(ToolCall, CALL_IDS, st.sampled_from(["rec", "no name!", "", "n" * 80]), ARGUMENTS, SIGNATURES),
)
ATTACHMENTS = st.builds(
    Attachment,
    st.sampled_from(["cat.png", ""]),
    st.sampled_from(["image/png", "image/jpeg", "image/gif", "application/pdf", ""]),
    st.sampled_from([*IMAGES, "gone"]),
    st.just(3),
)
USERS = st.builds(UserMessage, TEXTS, st.lists(ATTACHMENTS, max_size=2).map(tuple))
RESULTS = st.builds(ToolResultMessage, CALL_IDS, st.just("rec"), TEXTS, st.booleans())


def transcripts(models: Sequence[str]) -> st.SearchStrategy[tuple[Message, ...]]:
    """Messages in any order; the answers are of any of `models`."""
    answers = st.builds(
        AssistantMessage,
        st.lists(BLOCKS, max_size=4).map(tuple),
        st.sampled_from([PROVIDER, "other"]),
        st.sampled_from(models),
        st.sampled_from(list(StopReason)),
    )
    healthy = st.builds(_healthy_turn, USERS, answers)
    return st.lists(st.one_of(USERS, answers, RESULTS, healthy), max_size=12).map(_flat)


def _healthy_turn(question: UserMessage, answer: AssistantMessage) -> list[Message]:
    return [question, answer, *(ToolResultMessage(call.call_id, call.name, "r") for call in answer.tool_calls)]


def _flat(parts: Sequence[Message | list[Message]]) -> tuple[Message, ...]:
    return tuple(message for part in parts for message in (part if isinstance(part, list) else [part]))


def answer(*content: Text | Reasoning | ToolCall, model: str = MODEL, provider: str = PROVIDER) -> AssistantMessage:
    """An answer that stopped for its calls, if it has any."""
    has_calls = any(isinstance(block, ToolCall) for block in content)
    return AssistantMessage(content, provider, model, StopReason.TOOL_USE if has_calls else StopReason.STOP)


TRANSCRIPTS = transcripts([MODEL, "m2"])
