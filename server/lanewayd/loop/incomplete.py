"""Answers that are none: what is missing, what the model is told before it is asked again, and how the run ends when
that does not help. Pure. Source: spec 05, sections 5 and 6 (R-5.94, R-5.96, R-5.100 to R-5.104)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lanewayd.errors import ErrorCode
from lanewayd.messages import AssistantMessage, Message, Reasoning, RunError, StopReason, ToolResultMessage, UserMessage


class Lack(StrEnum):
    """What a message is, in place of an answer."""

    REASONING_ONLY = "reasoning_only"
    EMPTY = "empty"


MAX_NUDGES = {Lack.REASONING_ONLY: 2, Lack.EMPTY: 1}
INSTRUCTIONS = {
    Lack.REASONING_ONLY: (
        "The previous attempt ended with reasoning only. Give the visible answer now; do not repeat the reasoning."
    ),
    Lack.EMPTY: "The previous attempt produced no content. Continue from the current state and give the answer now.",
}
_WHAT = {
    Lack.REASONING_ONLY: "the model thought and then gave no answer",
    Lack.EMPTY: "the model gave no answer",
}
_VERIFY = " Tools of this run may have changed something: look at what they did before you send the message again."


@dataclass(frozen=True, slots=True)
class Conduct:
    """What a run has done before a model call."""

    is_replay_safe: bool = True
    """No tool was started that is not idempotent (R-5.96)."""
    has_output: bool = False
    """Something was said, or a tool was started."""


def lack_of(message: AssistantMessage) -> Lack | None:
    """None: it is an answer, calls tools, or was cut before it could say anything (a success, truncated)."""
    calls_tools = message.stop_reason is StopReason.TOOL_USE and bool(message.tool_calls)
    if calls_tools or message.text.strip():
        return None
    if any(isinstance(block, Reasoning) for block in message.content):
        return Lack.REASONING_ONLY
    return None if message.stop_reason is StopReason.LENGTH else Lack.EMPTY


def may_nudge(lack: Lack, *, nudges: int, conduct: Conduct) -> bool:
    """Whether the model is asked once more, after `nudges` times."""
    return conduct.is_replay_safe and nudges < MAX_NUDGES[lack]


def with_instruction(messages: Sequence[Message], instruction: str) -> tuple[Message, ...]:
    """The conversation with `instruction` at the end of what the user said last, after a blank line; it is in no
    transcript."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage):
            said = replace(message, text=f"{message.text}\n\n{instruction}")
            return (*messages[:index], said, *messages[index + 1 :])
    return (*messages, UserMessage(instruction))


def no_answer(lack: Lack, message: AssistantMessage) -> RunError:
    """The failure that `message` is."""
    return RunError(
        ErrorCode.PROVIDER_BAD_RESPONSE.value,
        f"{message.provider}, model {message.model}: {_WHAT[lack]}",
        provider=message.provider,
        model=message.model,
        http_status=200,
        retryable=True,
    )


def as_end(error: RunError, messages: Sequence[Message], conduct: Conduct) -> RunError:
    """The error of `no_answer` as a run ends with it: it names the tool after which the answer is missing, and asks to
    look at what tools did."""
    text, last, tool_name = f"{error.message}. ", messages[-1] if messages else None, ""
    if isinstance(last, ToolResultMessage) and not last.is_error:
        tool_name = last.name
        text += f"The tool {tool_name} finished before, but no final answer was given."
    else:
        text += "No response could be generated."
    text += " Send the message again, or use another model." if conduct.is_replay_safe else _VERIFY
    return replace(error, message=text, tool_name=tool_name)
