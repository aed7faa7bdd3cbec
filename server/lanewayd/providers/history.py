"""A conversation as every provider accepts it: each call has exactly one result, right behind its message. Pure.

Works on the request's copy; the stored transcript is never changed. Source: spec 05, section 7, step 2 and
R-5.107 to R-5.112.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lanewayd.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    StopReason,
    ToolCall,
    ToolOutcome,
    ToolResultMessage,
    UserMessage,
)

MISSING_RESULT = "No result of this call was recorded. It may or may not have been carried out."

_NOT_REPLAYED = (StopReason.ERROR, StopReason.ABORTED)


def pair_calls_with_results(messages: Iterable[Message]) -> tuple[Message, ...]:
    """`messages` with every result behind its call, in the order of the calls. Idempotent.

    A call without a result gets an error result that says so. Results that no call awaits, and second results, are
    dropped. Answers that failed, were aborted, or were cut off before they said anything are left out together with
    the results of their calls. Equal ids in different answers stay apart: a result belongs to the answer right before
    it, or to the only one that awaits its id.
    """
    messages = tuple(messages)
    if all(map(_needs_no_pairing, messages)):
        return messages
    slots: list[_Answer | UserMessage] = []
    answers: list[_Answer] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            answer = _Answer(message)
            slots.append(answer)
            answers.append(answer)
        elif isinstance(message, UserMessage):
            slots.append(message)
        else:
            _settle(answers, message)
    paired: list[Message] = []
    for slot in slots:
        if isinstance(slot, UserMessage):
            paired.append(slot)
        elif slot.is_replayed:
            paired.append(slot.message)
            paired.extend(slot.results())
    return tuple(paired)


def start_of_tool_loop(messages: Sequence[Message]) -> int:
    """The place of the last user message, behind which the calls and results of the current turn stand; -1 without."""
    for position in range(len(messages) - 1, -1, -1):
        if isinstance(messages[position], UserMessage):
            return position
    return -1


@dataclass(slots=True)
class _Answer:
    """An assistant message and the results found for its calls, by position."""

    message: AssistantMessage
    found: dict[int, ToolResultMessage] = field(default_factory=dict)

    @property
    def is_replayed(self) -> bool:
        return _is_replayed(self.message)

    def take(self, result: ToolResultMessage) -> bool:
        """Keep `result` for the first call that has its id and no result yet; say whether there was one."""
        position = self._awaiting(result.call_id)
        if position is None:
            return False
        self.found[position] = result
        return True

    def awaits(self, call_id: str) -> bool:
        return self._awaiting(call_id) is not None

    def results(self) -> list[ToolResultMessage]:
        """One result per call, in the order of the calls."""
        calls = enumerate(self.message.tool_calls)
        return [self.found.get(position) or _missing(call) for position, call in calls]

    def _awaiting(self, call_id: str) -> int | None:
        for position, call in enumerate(self.message.tool_calls):
            if call.call_id == call_id and position not in self.found:
                return position
        return None


def _needs_no_pairing(message: Message) -> bool:
    if isinstance(message, AssistantMessage):
        return _is_replayed(message) and not message.tool_calls
    return isinstance(message, UserMessage)


def _is_replayed(message: AssistantMessage) -> bool:
    if message.stop_reason is not StopReason.LENGTH:
        return message.stop_reason not in _NOT_REPLAYED
    has_thought = any(isinstance(block, Reasoning) for block in message.content)
    return not has_thought or bool(message.text.strip() or message.tool_calls)


def _settle(answers: list[_Answer], result: ToolResultMessage) -> None:
    """Give `result` to its call; nothing happens when no call can own it, or more than one."""
    if answers and answers[-1].take(result):
        return
    owners = [answer for answer in answers if answer.awaits(result.call_id)]
    if len(owners) == 1:
        owners[0].take(result)


def _missing(call: ToolCall) -> ToolResultMessage:
    return ToolResultMessage(call.call_id, call.name, MISSING_RESULT, is_error=True, outcome=ToolOutcome.UNKNOWN)
