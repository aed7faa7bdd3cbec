"""Gates that hold the store's writer where a test wants it, or fail its commits."""

import asyncio
import threading
from collections.abc import Callable, Sequence


class HoldingGate:
    """Implements CommitGate: holds the groups that `matches` says, before or after their COMMIT.

    `await reached()` returns when the writer stands at the gate; `release()` lets it and all later ones pass.
    """

    def __init__(self, matches: Callable[[object], bool], *, after: bool = False) -> None:
        self._matches = matches
        self._after = after
        self._loop = asyncio.get_running_loop()
        self._reached = asyncio.Event()
        self._open = threading.Event()
        self.held: list[object] = []

    def before_commit(self, commands: Sequence[object]) -> None:
        if not self._after:
            self._pass(commands)

    def after_commit(self, commands: Sequence[object]) -> None:
        if self._after:
            self._pass(commands)

    async def reached(self) -> None:
        """The writer is held."""
        await self._reached.wait()

    def release(self) -> None:
        """Let everything pass from now on."""
        self._open.set()

    def _pass(self, commands: Sequence[object]) -> None:
        if self._open.is_set() or not any(self._matches(command) for command in commands):
            return
        self.held.extend(commands)
        self._loop.call_soon_threadsafe(self._reached.set)
        self._open.wait()


class FailingGate:
    """Implements CommitGate: while `is_failing`, every COMMIT fails as a full disk does."""

    def __init__(self) -> None:
        self.is_failing = False
        self.failures = 0

    def before_commit(self, commands: Sequence[object]) -> None:
        if self.is_failing:
            self.failures += 1
            raise OSError(28, "No space left on device")

    def after_commit(self, commands: Sequence[object]) -> None:
        return
