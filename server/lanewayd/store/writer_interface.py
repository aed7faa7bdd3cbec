"""What the store's writer is given: how events look on the wire, who hears of commits, where tests can hold it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from lanewayd.events import EventPayload


class EventCodec(Protocol):
    """Gives events their wire form. Called on the writer's thread; pure."""

    def encode(
        self, payload: EventPayload, *, run_id: str, seq: int, time: datetime, session_key: str, agent_id: str
    ) -> bytes:
        """The encoded event without its cursor."""

    def with_cursor(self, encoded: bytes, *, store_id: str, position: int) -> bytes:
        """`encoded` with the cursor of its commit position."""


class CommitGate(Protocol):
    """A place to hold the writer at, for tests of what a crash leaves behind. Called on the writer's thread."""

    def before_commit(self, commands: Sequence[object]) -> None:
        """All commands of the group are applied, none is durable."""

    def after_commit(self, commands: Sequence[object]) -> None:
        """The group is durable, nobody has been told."""


class CommitListener(Protocol):
    """Hears each committed write, on the event loop's thread, in commit order, before its caller wakes."""

    def committed(self, command: object, result: object) -> None:
        """`command` is durable with this result."""

    def store_failing(self, error: str) -> None:
        """A group could not be committed; called once when it begins."""

    def store_working(self) -> None:
        """A commit succeeded after failures."""
