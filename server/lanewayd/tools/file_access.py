"""Blocking file work of the file tools, in threads of its own; the loop never waits for a disk.

A file is replaced as a whole: readers see the old content or the new one, and after a full disk or a power cut one of
the two is there. Changes of one path come one after the other; what two calls do to one file is never mixed.
"""

import asyncio
import os
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from lanewayd.tools.confinement import PathRefused, ResolvedPath, open_parent, open_regular, resolve_path
from lanewayd.tools.shielding import end_of

_T = TypeVar("_T")
_LOCKS = 64
_CHUNK_BYTES = 1_048_576


class FileAccess:
    """Resolves, reads and replaces files. Owns its threads and the locks of paths; `close` when no call is left."""

    def __init__(self, *, home: Path | None, is_confined: bool = True) -> None:
        """`home` is what `~` means. Without `is_confined` paths may lead out of the workspace."""
        self._home = home
        self._is_confined = is_confined
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="files")
        self._path_locks = tuple(threading.Lock() for _ in range(_LOCKS))

    def close(self) -> None:
        """End the threads. Waits for those at work."""
        self._threads.shutdown()

    async def in_thread(self, work: Callable[[], _T]) -> _T:
        """The outcome of `work`. A cancelled caller waits for work that has begun: afterwards nothing changes."""
        submitted = self._threads.submit(work)
        working = asyncio.wrap_future(submitted)
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            if not submitted.cancel():
                with suppress(Exception):
                    await end_of(working)
            raise

    def resolve(self, argument: str, workspace: Path) -> ResolvedPath:
        """See `resolve_path`. Blocking."""
        return resolve_path(argument, workspace=workspace, home=self._home, is_confined=self._is_confined)

    @contextmanager
    def changing(self, resolved: ResolvedPath) -> Iterator[None]:
        """Held while a path is read to be changed and changed. Blocking."""
        with self._path_locks[hash(resolved.path) % _LOCKS]:
            yield


@contextmanager
def opened(resolved: ResolvedPath) -> Iterator[int]:
    """A handle of the file, for reading. Raises PathRefused for whatever keeps it from being read."""
    with _refusals(resolved):
        directory_fd, name = open_parent(resolved, create=False)
        try:
            file_fd = open_regular(name, directory_fd, os.O_RDONLY)
        finally:
            os.close(directory_fd)
        try:
            yield file_fd
        finally:
            os.close(file_fd)


def chunks_of(file_fd: int, most_bytes: int) -> Iterator[bytes]:
    """The file from where it stands, at most `most_bytes` of it."""
    while most_bytes > 0:
        chunk = os.read(file_fd, min(_CHUNK_BYTES, most_bytes))
        if not chunk:
            return
        most_bytes -= len(chunk)
        yield chunk


def replace_file(resolved: ResolvedPath, content: bytes, temporary_name: str) -> bool:
    """Make `content` the file's content, creating it and its directories if needed; True if it was new.

    The mode of an existing file is kept. Raises PathRefused; then the file is as it was.
    """
    with _refusals(resolved):
        directory_fd, name = open_parent(resolved, create=True)
        try:
            mode = _mode_of_writable(name, directory_fd)
            _write_and_rename(directory_fd, temporary_name, name, content, mode)
        finally:
            os.close(directory_fd)
    return mode is None


def _mode_of_writable(name: str, directory_fd: int) -> int | None:
    """The mode of the existing file; None if there is none. Raises OSError if it may not be written."""
    try:
        file_fd = open_regular(name, directory_fd, os.O_WRONLY)
    except FileNotFoundError:
        return None
    try:
        return stat.S_IMODE(os.fstat(file_fd).st_mode)
    finally:
        os.close(file_fd)


def _write_and_rename(directory_fd: int, temporary_name: str, name: str, content: bytes, mode: int | None) -> None:
    with suppress(FileNotFoundError):
        # Left by a call that a crash interrupted; that call never comes again.
        os.unlink(temporary_name, dir_fd=directory_fd)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file_fd = os.open(temporary_name, flags, 0o666, dir_fd=directory_fd)
    try:
        try:
            with os.fdopen(file_fd, "wb") as file:
                file.write(content)
                file.flush()
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            os.replace(temporary_name, name, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)
        except BaseException:
            os.unlink(temporary_name, dir_fd=directory_fd)
            raise
    finally:
        os.fsync(directory_fd)


@contextmanager
def _refusals(resolved: ResolvedPath) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise PathRefused(f"{resolved.shown} does not exist.") from error
    except OSError as error:
        raise PathRefused(f"{resolved.shown}: {os.strerror(error.errno or 0)}.") from error
