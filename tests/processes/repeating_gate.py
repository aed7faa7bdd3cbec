"""A gate that holds the store's writer again and again, once for each time a test asks for it."""

import asyncio
import threading
from collections.abc import Callable, Sequence


class RepeatingGate:
    """Implements CommitGate: holds the next group that `matches`, before or after its COMMIT, when it was told to."""

    def __init__(self, matches: Callable[[object], bool], *, after: bool = False) -> None:
        self._matches = matches
        self._after = after
        self._is_armed = False
        self._open = threading.Event()
        self._held = asyncio.Event()

    def hold_next(self) -> asyncio.Event:
        """Arm it; the event is set when the writer stands."""
        self._held = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._open.clear()
        self._is_armed = True
        return self._held

    def release(self) -> None:
        """Let the writer go on."""
        self._open.set()

    def before_commit(self, commands: Sequence[object]) -> None:
        if not self._after:
            self._pass(commands)

    def after_commit(self, commands: Sequence[object]) -> None:
        if self._after:
            self._pass(commands)

    def _pass(self, commands: Sequence[object]) -> None:
        if self._is_armed and any(self._matches(command) for command in commands):
            self._is_armed = False
            self._loop.call_soon_threadsafe(self._held.set)
            self._open.wait()
