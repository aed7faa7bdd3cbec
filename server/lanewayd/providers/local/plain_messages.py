"""A conversation with tool calls -> one of plain text, for models whose templates know no tools. Pure.

How calls and results read is data, because it decides what a small model does with them: measured with the embedded
one, which repeats the JSON of a call instead of answering, and copies a result faithfully only when it is asked to.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lanewayd.messages import AssistantMessage, Message, Text, ToolCall, ToolResultMessage, UserMessage
from lanewayd.providers.history import pair_calls_with_results

_MARK = re.compile(r"\{(tool|arguments|result)\}")


@dataclass(frozen=True, slots=True)
class Wording:
    """Texts with {tool}, {arguments} and {result} in them. `reminder` follows a result that awaits its answer."""

    call: str
    result: str
    reminder: str = ""


FOR_THE_EMBEDDED_MODEL = Wording("I used the tool.", 'The result is "{result}".', " Tell me the result.")
FOR_OTHERS = Wording('{"tool": "{tool}", "arguments": {arguments}}', "The tool {tool} answered:\n{result}")


def plain_messages(messages: Sequence[Message], wording: Wording, *, reminds: bool) -> tuple[Message, ...]:
    """`messages` with each call as a sentence of the assistant and each result as a message of the user.

    With `reminds` a result at the end is followed by the wording's reminder.
    """
    plain = list(_plain(pair_calls_with_results(messages), wording))
    if reminds and plain and isinstance(messages[-1], ToolResultMessage) and isinstance(plain[-1], UserMessage):
        plain[-1] = UserMessage(plain[-1].text + wording.reminder)
    return tuple(plain)


def _plain(messages: Sequence[Message], wording: Wording) -> Iterator[Message]:
    for message in messages:
        if isinstance(message, ToolResultMessage):
            yield UserMessage(_filled(wording.result, tool=message.name, result=message.text.strip() or "(nothing)"))
        elif isinstance(message, AssistantMessage) and message.tool_calls:
            yield replace(message, content=(Text(_with_calls(message, wording)),))
        else:
            yield message


def _with_calls(message: AssistantMessage, wording: Wording) -> str:
    calls = (_call(call, wording) for call in message.tool_calls)
    return "\n".join(part for part in (message.text, *calls) if part.strip())


def _call(call: ToolCall, wording: Wording) -> str:
    return _filled(wording.call, tool=call.name, arguments=call.arguments_json.strip() or "{}")


def _filled(text: str, **values: str) -> str:
    """Not str.format: the JSON of a call has braces. In one pass: what is filled in may look like a mark."""
    return _MARK.sub(lambda mark: values[mark.group(1)], text)
