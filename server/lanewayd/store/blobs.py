"""The files of attachments: each is named by the SHA-256 of its content and never changes (DESIGN, 2).

A file is there and synced before a row names it, and goes when no row does. Who is about to name files holds their
names meanwhile, so that no sweep takes them away.
"""

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from lanewayd.errors import StoreUnavailable

_UNFINISHED = ".unfinished"


class Blobs:
    """One folder. Files are read and written in worker threads, one write or sweep at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: Counter[str] = Counter()
        self._changing = asyncio.Lock()

    @contextmanager
    def holding(self, contents: Sequence[bytes]) -> Iterator[list[str]]:
        """The names of contents; none of these files is swept away until the block ends."""
        names = [hashlib.sha256(content).hexdigest() for content in contents]
        self._held.update(names)
        try:
            yield names
        finally:
            self._held.subtract(names)
            self._held += Counter()

    async def put(self, name: str, content: bytes) -> None:
        """Have a synced file of this content, whose name is held. Raises StoreUnavailable."""
        async with self._changing:
            try:
                await asyncio.to_thread(self._write, name, content)
            except OSError as error:
                raise StoreUnavailable(f"an attachment cannot be written: {error.strerror or error}") from error

    async def read(self, blob_hash: str) -> bytes | None:
        """None: it is not there any more, or cannot be read."""
        try:
            return await asyncio.to_thread((self._folder / blob_hash).read_bytes)
        except OSError:
            return None

    async def sweep(self, named: Callable[[], Awaitable[set[str]]]) -> int:
        """Remove the files that no row names and nobody holds; how many those were. Raises what `named` raises.

        One that cannot be removed stays for the next sweep.
        """
        async with self._changing:
            # Held ones are left out before the rows are read: who lets go has its row by then.
            free = {name for name in await asyncio.to_thread(self._names) if not self._held[name]}
            removed = sorted(free - await named()) if free else []
            await asyncio.to_thread(self._remove, removed)
        return len(removed)

    def _write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        if path.exists():
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        unfinished = path.with_suffix(_UNFINISHED)
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
        for folder in (self._folder, self._folder.parent):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _names(self) -> set[str]:
        """What is there; nothing when the folder cannot be read: then there is nothing to sweep now."""
        try:
            return {path.name for path in self._folder.iterdir()}
        except OSError:
            return set()

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            with suppress(OSError):
                (self._folder / name).unlink(missing_ok=True)
