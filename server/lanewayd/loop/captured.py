"""What a model is asked and answers, in the form that spans carry it (GenAI conventions: messages of role and parts).

Pure. Used only when content is captured; secrets are taken out and lengths cut by who puts it into a span.
"""

from typing import Any

from lanewayd.messages import AssistantMessage, Message, Text, ToolCall, ToolResultMessage, UserMessage
from lanewayd.providers.interface import ModelRequest
from lanewayd.telemetry.traces import CapturedRequest


def captured_request(request: ModelRequest) -> CapturedRequest:
    """The system prompt, the whole conversation and the tools offered."""
    return CapturedRequest(
        system=request.system,
        messages=[_message(message) for message in request.messages],
        tools=[
            {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema}
            for tool in request.tools
        ],
    )


def captured_answer(message: AssistantMessage) -> dict[str, Any]:
    """The model's message and why it ended."""
    return {**_assistant(message), "finish_reason": message.stop_reason.value}


def _message(message: Message) -> dict[str, Any]:
    if isinstance(message, UserMessage):
        return {"role": "user", "parts": [{"type": "text", "content": message.text}]}
    if isinstance(message, ToolResultMessage):
        return {"role": "tool", "parts": [_result(message)]}
    return _assistant(message)


def _assistant(message: AssistantMessage) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, ToolCall):
            call = {"type": "tool_call", "id": block.call_id, "name": block.name, "arguments": block.arguments_json}
            parts.append(call)
        else:
            kind = "text" if isinstance(block, Text) else "reasoning"
            parts.append({"type": kind, "content": block.text})
    return {"role": "assistant", "parts": parts}


def _result(message: ToolResultMessage) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": message.call_id, "response": message.text}
