"""The files of attachments: each is named by the SHA-256 of its content and never changes (DESIGN, 2).

A file is there and synced before a row names it, and goes when no row does. Who is about to name files holds their
names until the command that does so is with the store's writer. A sweep asks that writer, behind all commands given
before, and leaves alone what is held, or was at any moment since it began.
"""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from lanewayd.errors import StoreUnavailable

T = TypeVar("T")

_NAME = re.compile(r"[0-9a-f]{64}")
_UNFINISHED = ".unfinished"


class Blobs:
    """One folder. Owns its files, who holds which, and which of them may be named by nobody.

    One thread changes files, in the order in which that was decided on the event loop: what is put after a sweep has
    decided is written after it has removed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: Counter[str] = Counter()
        self._held_since_sweep_began: set[str] | None = None
        """None: no sweep is under way."""
        self._suspects: set[str] = set()
        self._has_looked_at_all = False
        self._sweeping = asyncio.Lock()
        self._changes = ThreadPoolExecutor(max_workers=1, thread_name_prefix="laneway-blobs")

    @contextmanager
    def holding(self, names: Collection[str]) -> Iterator[None]:
        """No sweep takes files of these names until the block ends; the next one looks whether they are named."""
        self._held.update(names)
        if self._held_since_sweep_began is not None:
            self._held_since_sweep_began.update(names)
        try:
            yield
        finally:
            self._held.subtract(names)
            self._held += Counter()
            self._suspects.update(names)

    def suspect(self, names: Iterable[str]) -> None:
        """Rows that named these are gone: the next sweep looks at them."""
        self._suspects.update(names)

    async def put(self, name: str, content: bytes) -> None:
        """Have a synced file of this content, whose name is held. Raises StoreUnavailable."""
        try:
            await self._change(lambda: self._write(name, content))
        except OSError as error:
            raise StoreUnavailable(f"an attachment cannot be written: {error.strerror or error}") from error

    async def read(self, blob_hash: str) -> bytes | None:
        """None: it is not there any more, or cannot be read."""
        try:
            return await asyncio.to_thread((self._folder / blob_hash).read_bytes)
        except OSError:
            return None

    async def sweep(self, unnamed: Callable[[Collection[str]], Awaitable[Collection[str]]]) -> int:
        """Remove the files that no row names and nobody holds; how many those are. The first sweep of this process
        looks at all files, later ones at those that were held, or lost a row.

        `unnamed`: those of the names that no row has, after all commands given to the store so far. What it raises
        comes out; the next sweep looks at the same files. One that cannot be removed stays for the next start.
        """
        async with self._sweeping:
            suspects, self._suspects = self._suspects, set()
            self._held_since_sweep_began = set(self._held)
            try:
                names = suspects if self._has_looked_at_all else suspects | await self._change(self._names)
                removed = set(await unnamed(names)) - self._held_since_sweep_began if names else set()
                if removed:  # from here to its place in the thread's queue nothing else can be decided
                    await self._change(lambda: self._remove(removed))
            except BaseException:
                self._suspects |= suspects
                raise
            finally:
                self._held_since_sweep_began = None
            self._has_looked_at_all = True
        return len(removed)

    def close(self) -> None:
        """End the thread."""
        self._changes.shutdown(wait=True)

    async def _change(self, change: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._changes, change)

    # --- in the thread that changes files ---

    def _write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        if not _has_size(path, len(content)):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            unfinished = path.with_suffix(_UNFINISHED)
            try:
                with unfinished.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                unfinished.rename(path)
            finally:
                unfinished.unlink(missing_ok=True)
        # Also for a file that was there: who has written it may have died before this.
        for folder in (self._folder, self._folder.parent):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _names(self) -> set[str]:
        """The blobs that are there, none when the folder cannot be read. What a crash has left half written goes."""
        try:
            files = list(self._folder.iterdir())
        except OSError:
            return set()
        for file in files:
            if file.suffix == _UNFINISHED:
                with suppress(OSError):
                    file.unlink()
        return {file.name for file in files if _NAME.fullmatch(file.name)}

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(OSError):
                (self._folder / name).unlink(missing_ok=True)


def _has_size(path: Path, size_bytes: int) -> bool:
    """Whether the file is there, as long as it was written."""
    try:
        return path.stat().st_size == size_bytes
    except FileNotFoundError:
        return False
