"""Messages that wait while their session is at work: which of them make one turn, when, and what it is told. Pure.

Source: spec 02, 4.6. A collected turn has the options of its first message; a message that asks for anything else waits
for a turn of its own, and so does all that came behind it (instead of R-2.54).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from lanewayd.queueing.options import options_of
from lanewayd.records import QueueMode, RunRequest

COLLECTED_TITLE = "[Messages that came while you were at work]"
DROPPED_TITLE = "[{count} messages were dropped, because more waited than the queue may hold]"
DROPPED_HEADING = "Summary of the last of them:"
MAX_LINE_CHARACTERS = 160
LONGEST_WAIT_FACTOR = 10
"""A stream of messages puts the turn off for so many quiet times at most."""


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """A message as a collected turn shows it."""

    run_id: str
    text: str


@dataclass(frozen=True, slots=True)
class DroppedMessages:
    """What the cap has dropped: how many, and the texts of the last, oldest first."""

    count: int = 0
    texts: tuple[str, ...] = ()


def collectable(host: RunRequest, behind: Sequence[RunRequest]) -> int:
    """How many of the messages directly behind `host`, in order, belong into its turn."""
    count = 0
    for request in behind:
        if request.queue_mode != QueueMode.COLLECT or not _asks_the_same(host, request):
            break
        count += 1
    return count


def _asks_the_same(host: RunRequest, other: RunRequest) -> bool:
    """Nothing but the text differs in what a run obeys, and both go the same way."""
    is_plain = not other.response_schema_json and not other.begins_anew
    return is_plain and _obeyed(host) == _obeyed(other)


def _obeyed(request: RunRequest) -> tuple[object, ...]:
    return (*options_of(request), request.lane, request.timeout_s, request.max_turns, request.response_schema_json)


def collected_prompt(messages: Sequence[WaitingMessage], dropped: DroppedMessages) -> str:
    """What the user says in a collected turn; the text alone when there is one message and nothing was dropped."""
    if len(messages) == 1 and not dropped.count:
        return messages[0].text
    parts = [COLLECTED_TITLE]
    if dropped.count:
        parts.append(dropped_summary(dropped))
    for number, message in enumerate(messages, start=1):
        parts.append(f"---\n{number}.\n{json.dumps({'message_id': message.run_id})}\n{message.text}")
    return "\n\n".join(parts)


def dropped_summary(dropped: DroppedMessages) -> str:
    """How many messages were dropped, and a line for each whose text is known (R-2.49, R-2.51)."""
    lines = [f"- {summary_line(text)}" for text in dropped.texts]
    return "\n".join([DROPPED_TITLE.format(count=dropped.count), DROPPED_HEADING, *lines])


def summary_line(text: str) -> str:
    """White space collapsed, at most 160 characters with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_LINE_CHARACTERS else line[: MAX_LINE_CHARACTERS - 1] + "…"


@dataclass(frozen=True, slots=True)
class QuietWindow:
    """When collected messages may become a turn: `quiet_s` after the last one, put off by each new one, but by no more
    than LONGEST_WAIT_FACTOR times that in all (R-2.57). Times are of the monotonic clock."""

    first_s: float
    last_s: float

    def with_message(self, now_s: float) -> "QuietWindow":
        """As another message leaves it."""
        return QuietWindow(self.first_s, now_s)

    def ends_at(self, quiet_s: float) -> float:
        """When the turn may begin."""
        return min(self.last_s + quiet_s, self.first_s + LONGEST_WAIT_FACTOR * quiet_s)
