"""A small model of D-7: where each message of some sessions is, and what becomes of the next one."""

from collections import Counter
from dataclasses import dataclass

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.records import Disposition, DropPolicy, QueueMode, RunState


@dataclass
class Message:
    """What the model knows of one."""

    number: int
    session_key: str
    mode: QueueMode
    tools: tuple[str, ...]
    disposition: Disposition
    state: RunState = RunState.QUEUED
    host: str = ""
    """The run that it waits to go into, or is part of."""
    is_marked: bool = False
    """Its abort was asked for while it was at work."""
    is_said: bool = False
    """Its words stand in the transcript."""

    @property
    def run_id(self) -> str:
        return f"run-{self.number}"

    @property
    def words(self) -> str:
        return f"message {self.number};"

    @property
    def waits_for_turn(self) -> bool:
        return self.state is RunState.QUEUED and not self.host


class MessageModel:
    """Owner of what the messages are to be. `happened` counts what they went through."""

    def __init__(self, *, cap: int, drop: DropPolicy, happened: Counter[str]) -> None:
        self.cap, self.drop = cap, drop
        self._happened = happened
        self.messages: dict[str, Message] = {}

    def of(self, session_key: str) -> list[Message]:
        """Those of a session that have not ended, in order of arrival."""
        return [each for each in self.messages.values() if each.session_key == session_key and not each.state.is_ended]

    def at_work(self, session_key: str) -> Message | None:
        running = [each for each in self.of(session_key) if each.state is RunState.RUNNING]
        assert len(running) <= 1, "two runs of one session are at work"
        return running[0] if running else None

    def waiting_to_be_collected(self, session_key: str) -> list[Message]:
        return [each for each in self.of(session_key) if each.waits_for_turn and each.mode is QueueMode.COLLECT]

    def first_of_a_free_session(self, session_key: str) -> int:
        """A message that found its session free is not counted against the cap when it comes."""
        return sum(each.disposition is Disposition.STARTED for each in self.waiting_to_be_collected(session_key))

    def expected(self, message: Message) -> tuple[Message, list[Message], Message | None]:
        """The message as it must be accepted, those that must be dropped for it, the run that it interrupts.

        Raises LanewayError when it must be refused.
        """
        unended, running = self.of(message.session_key), self.at_work(message.session_key)
        message.disposition = Disposition.QUEUED if unended else Disposition.STARTED
        if message.mode is QueueMode.STEER and running is not None and not running.is_marked:
            waits = any(each.mode is QueueMode.STEER and each.waits_for_turn for each in unended)
            if not waits and running.tools == message.tools:
                message.host, message.disposition = running.run_id, Disposition.STEERED
        if message.mode is QueueMode.INTERRUPT and running is not None and not running.is_marked:
            message.disposition = Disposition.INTERRUPTED_PREVIOUS
            return message, [], running
        dropped: list[Message] = []
        if message.mode is QueueMode.COLLECT and unended:
            waiting = self.waiting_to_be_collected(message.session_key)
            surplus = len(waiting) + 1 - self.cap
            if surplus > 0 and self.drop is DropPolicy.NEW:
                raise LanewayError(ErrorCode.QUEUE_FULL, "")
            dropped = waiting[: max(0, surplus)]
            if len(waiting) > len(dropped):
                message.disposition = Disposition.COLLECTED
        return message, dropped, None

    def ends(self, message: Message, state: RunState) -> None:
        """What ends with a run, and what waits for a turn of its own from then on."""
        message.state = state
        self._happened[f"runs {state.value}"] += 1
        for other in self.of(message.session_key):
            if other.host == message.run_id and other.state is RunState.MERGED:
                other.state = state
            elif other.host == message.run_id:
                other.host = ""
                self._happened["messages detached"] += 1
