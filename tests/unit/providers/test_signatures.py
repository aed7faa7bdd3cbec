"""Which rejections are met by leaving signatures out."""

import pytest

from lanewayd.messages import AssistantMessage, Reasoning, StopReason, Text, ToolCall, UserMessage
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.signatures import without_rejected_signatures

BLOCKS = Reasoning("a", "thinking", "s"), Text("b", "s"), ToolCall("c", "t", "{}", "s")
SIGNED = ModelRequest("m", "", (UserMessage("x"), AssistantMessage(BLOCKS, "p", "m", StopReason.TOOL_USE)))


@pytest.mark.parametrize(
    "said",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
        "messages.5.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
        "messages.3: these thinking blocks belong to another conversation",
        "Thought signature is not valid",
        '{"error":{"code":"invalid_encrypted_content","message":"could not be verified"}}',
    ],
)
def test_a_rejected_signature_is_answered_with_a_request_that_has_none(said: str) -> None:
    unsigned = without_rejected_signatures(SIGNED, 400, said.encode())
    assert unsigned is not None
    answer = unsigned.messages[1]
    assert isinstance(answer, AssistantMessage)
    assert answer.content == (Reasoning("a", "thinking"), Text("b"), ToolCall("c", "t", "{}"))
    assert without_rejected_signatures(unsigned, 400, said.encode()) is None


def test_any_other_answer_stands() -> None:
    assert without_rejected_signatures(SIGNED, 500, b"bad signature") is None
    assert without_rejected_signatures(SIGNED, 400, b'"thinking.type.enabled" is not supported for this model.') is None
    assert without_rejected_signatures(SIGNED, 400, b"prompt is too long \xff") is None
