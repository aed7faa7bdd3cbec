"""Which turns of a conversation are sent with their images. Pure. Source: spec 06, R-6.68; spec 05, R-5.117."""

from collections.abc import Sequence

from lanewayd.messages import AssistantMessage, Message, StopReason, UserMessage

TURNS_WITH_IMAGES = 3
"""Completed turns before the current one whose images are sent again; older ones are only named."""
_COMPLETED = (StopReason.STOP, StopReason.LENGTH)


def oldest_with_images(messages: Sequence[Message]) -> int:
    """The place from which on images are sent: the begin of the third last completed turn before the current one."""
    turns: list[int] = []
    """Where the completed turns begin; the last user message begins the current one."""
    begin, is_completed = -1, False
    for place, message in enumerate(messages):
        if isinstance(message, UserMessage):
            if is_completed:
                turns.append(begin)
            begin, is_completed = place, False
        elif isinstance(message, AssistantMessage) and begin >= 0:
            is_completed = is_completed or message.stop_reason in _COMPLETED
    return turns[-TURNS_WITH_IMAGES] if len(turns) >= TURNS_WITH_IMAGES else 0
