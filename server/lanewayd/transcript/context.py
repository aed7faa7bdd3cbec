"""Entries -> what a run goes on from: the messages a model sees, and where this run stands in them (D-2). Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from lanewayd.messages import AssistantMessage, Message, StopReason, ToolCall, ToolResultMessage, Usage
from lanewayd.records import Entry
from lanewayd.transcript.entries import message_of


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands in its session's transcript.

    `unsettled` is the assistant message whose calls have no results yet; `final` the one that ended the run's loop, not
    yet settled. At most one of the two is set. `turns` and `usage` count this run's model calls so far.
    """

    messages: tuple[Message, ...]
    turns: int
    usage: Usage
    unsettled: tuple[ToolCall, ...] = ()
    unsettled_entry_id: str = ""
    final: AssistantMessage | None = None
    last_message: AssistantMessage | None = None
    """The run's last assistant message, whatever became of it."""


def standing_of(entries: Sequence[Entry], run_id: str) -> Standing:
    """Read a session's context, oldest entry first, from the view of `run_id`."""
    messages: list[Message] = []
    turns, usage = 0, Usage()
    unsettled: tuple[ToolCall, ...] = ()
    unsettled_entry_id = ""
    final: AssistantMessage | None = None
    last: AssistantMessage | None = None
    for entry in entries:
        message = message_of(entry)
        if message is None:
            continue
        messages.append(message)
        if entry.run_id != run_id:
            continue
        if isinstance(message, AssistantMessage):
            turns += 1
            usage += message.usage
            last = message
            # As the loop decides: tools run only when the model stopped for them.
            unsettled = message.tool_calls if message.stop_reason is StopReason.TOOL_USE else ()
            unsettled_entry_id = entry.entry_id
            is_final = not unsettled and message.stop_reason not in (StopReason.ERROR, StopReason.ABORTED)
            final = message if is_final else None
        elif isinstance(message, ToolResultMessage):
            unsettled, final = (), None
        else:
            final = None  # a message that the run took in wants an answer of its own
    return Standing(tuple(messages), turns, usage, unsettled, unsettled_entry_id, final, last)
