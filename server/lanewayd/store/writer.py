"""The one thread that writes: commands wait in a queue, are committed in groups, and their callers hear afterwards.

A command that is refused fails alone; a group that cannot be committed fails whole. Nobody hears of a command before
its group is durable. While the store fails, the thread tries to commit by itself until it works again.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lanewayd.clock import Clock
from lanewayd.errors import StoreUnavailable
from lanewayd.store.transaction import GroupLostError, SavepointsNeededError, Transaction
from lanewayd.store.writer_interface import CommitGate, CommitListener

Apply = Callable[[Transaction, object], object]

_AVERAGE_WEIGHT = 0.1


@dataclass(frozen=True, slots=True)
class WriterLimits:
    """`max_group` commands are committed together. While failing, a trial commit comes after `first_retry_s`, then
    twice as long each time, up to `last_retry_s`."""

    max_group: int = 256
    first_retry_s: float = 0.25
    last_retry_s: float = 5.0


@dataclass(slots=True)
class _Item:
    """A submitted command, and later what became of it."""

    command: object
    future: "asyncio.Future[Any]"
    submitted_s: float
    result: object = None
    error: Exception | None = None


@dataclass(slots=True)
class _Report:
    """What the event loop hears of a group."""

    items: list[_Item] = field(default_factory=list)
    failing: str = ""
    is_working_again: bool = False


class Writer:
    """Owns the transaction, its thread, and whether the store is failing.

    `on_committed` hears of each durable group, on the writer's thread: how many commands, seconds since the first came.
    It and `listener` may be set at any time on the event loop's thread. `failing_since` is a monotonic time, None while
    the store works.
    """

    def __init__(
        self,
        transaction: Transaction,
        apply: Apply,
        *,
        clock: Clock,
        gate: CommitGate | None,
        limits: WriterLimits,
    ) -> None:
        self._transaction = transaction
        self._apply = apply
        self._clock = clock
        self._gate = gate
        self._limits = limits
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="laneway-store-writer", daemon=True)
        self.listener: CommitListener | None = None
        self.on_committed: Callable[[int, float], None] | None = None
        self.failing_since: float | None = None
        self.commit_ms = 0.0
        self._thread.start()

    async def write(self, command: object) -> Any:
        """Submit a command; its result once it is durable and the listener has heard of it.

        Cancelling the caller changes nothing for the command. Raises what the command raised, or StoreUnavailable.
        """
        if self._is_closing:
            raise StoreUnavailable("the store is closed")
        item = _Item(command, self._loop.create_future(), self._clock.monotonic())
        self._queue.put(item)
        # The future is only the place where the answer is put: cancelling it does not reach the command.
        return await item.future

    async def close(self) -> None:
        """Commit what was submitted, checkpoint, end the thread. Idempotent."""
        if not self._is_closing:
            self._is_closing = True
            self._queue.put(None)
        await asyncio.shield(self._ended)
        self._thread.join()

    # --- on the writer's thread ---

    def _work(self) -> None:
        try:
            retry_s = self._limits.first_retry_s
            while True:
                items, is_last = self._next_group(retry_s if self.failing_since is not None else None)
                if items:
                    self._commit(items)
                elif self.failing_since is not None and not is_last:
                    self._try_again()
                if is_last:
                    return
                is_failing = self.failing_since is not None
                retry_s = min(retry_s * 2, self._limits.last_retry_s) if is_failing else self._limits.first_retry_s
        finally:
            # Without the checkpoint what is committed is in the write-ahead log, where the next start finds it.
            with contextlib.suppress(GroupLostError):
                self._transaction.checkpoint_and_close()
            self._tell(self._end)

    def _next_group(self, timeout_s: float | None) -> tuple[list[_Item], bool]:
        """The commands to commit together, and whether the writer is to end after them."""
        items: list[_Item] = []
        try:
            item = self._queue.get(timeout=timeout_s)
            while item is not None:
                items.append(item)
                if len(items) == self._limits.max_group:
                    return items, False
                item = self._queue.get_nowait()
            return items, True
        except queue.Empty:
            return items, False

    def _commit(self, items: list[_Item]) -> None:
        try:
            self._commit_group(items)
        except Exception as error:  # noqa: BLE001 - whatever failed, the callers of the group must hear of it
            if not self._transaction.is_stored_after_all():
                self._fail(items, str(error) or type(error).__name__)
                return
        spent_ms = (self._clock.monotonic() - items[0].submitted_s) * 1000
        if self.on_committed is not None:
            self.on_committed(len(items), spent_ms / 1000)
        self.commit_ms += (spent_ms - self.commit_ms) * (_AVERAGE_WEIGHT if self.commit_ms else 1)
        self._report(_Report(items, is_working_again=self._works()))

    def _commit_group(self, items: list[_Item]) -> None:
        transaction = self._transaction
        transaction.begin()
        try:
            self._apply_all(items, transaction.attempt_lightly)
        except SavepointsNeededError:
            transaction.rollback()
            transaction.begin()
            self._apply_all(items, transaction.attempt)
        self._finish_group([item.command for item in items if item.error is None] if self._gate else [])

    def _finish_group(self, commands: list[object]) -> None:
        self._transaction.store_numbers()
        if self._gate:
            self._gate.before_commit(commands)
        self._transaction.commit()
        if self._gate:
            self._gate.after_commit(commands)

    def _apply_all(self, items: list[_Item], attempt: Callable[[Apply, object], object]) -> None:
        for item in items:
            item.error = None
            try:
                item.result = attempt(self._apply, item.command)
            except (GroupLostError, SavepointsNeededError):
                raise
            except Exception as error:  # noqa: BLE001 - a refusal or a bug of one command; its caller gets it
                item.error = error

    def _fail(self, items: list[_Item], error: str) -> None:
        for item in items:
            item.result = None
            item.error = StoreUnavailable(f"the store cannot commit: {error}")
        is_news = self.failing_since is None
        if is_news:
            self.failing_since = self._clock.monotonic()
        self._report(_Report(items, failing=error if is_news else ""))

    def _try_again(self) -> None:
        try:
            for step in (self._transaction.take_room, self._transaction.give_room_back):
                self._transaction.begin()
                step()
                self._finish_group([])
        except Exception:  # noqa: BLE001 - still failing, for whatever reason; the listener knows already
            self._transaction.is_stored_after_all()
            return
        self._report(_Report(is_working_again=self._works()))

    def _works(self) -> bool:
        """The store works; whether that is news."""
        was_failing = self.failing_since is not None
        self.failing_since = None
        return was_failing

    def _report(self, report: _Report) -> None:
        self._tell(lambda: self._deliver(report))

    def _tell(self, callback: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed: nobody is left to hear it
            self._loop.call_soon_threadsafe(callback)

    # --- on the event loop's thread ---

    def _deliver(self, report: _Report) -> None:
        listener = self.listener
        if report.failing and listener:
            self._call(lambda: listener.store_failing(report.failing))
        if report.is_working_again and listener:
            self._call(listener.store_working)
        for item in report.items:
            if item.error is None:
                if listener:
                    self._call(listener.committed, item.command, item.result)
                if not item.future.done():
                    item.future.set_result(item.result)
            elif not item.future.done():
                item.future.set_exception(item.error)

    def _call(self, heard: Callable[..., None], *arguments: object) -> None:
        try:
            heard(*arguments)
        except Exception as error:  # noqa: BLE001 - one listener's bug must not leave the callers of a group waiting
            self._loop.call_exception_handler({"message": "a commit listener failed", "exception": error})

    def _end(self) -> None:
        self._is_closing = True
        while not self._queue.empty():
            item = self._queue.get_nowait()
            if item is not None and not item.future.done():
                item.future.set_exception(StoreUnavailable("the store is closed"))
        if not self._ended.done():
            self._ended.set_result(None)
