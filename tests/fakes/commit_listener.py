"""A commit listener that remembers what it heard, and can be waited on."""

import asyncio


class RecordingListener:
    """Implements CommitListener."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, object]] = []
        self.failures: list[str] = []
        self.is_failing = asyncio.Event()
        self.is_working = asyncio.Event()

    def committed(self, command: object, result: object) -> None:
        self.heard.append((command, result))

    def store_failing(self, error: str) -> None:
        self.failures.append(error)
        self.is_working.clear()
        self.is_failing.set()

    def store_working(self) -> None:
        self.is_failing.clear()
        self.is_working.set()
