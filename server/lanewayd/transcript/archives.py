"""Transcripts that left the store, as compressed exports under `archives/` (spec 03, R-3.71).

A file is there whole or not at all: it is written beside its name, synced, read back, then renamed. Files of one
session key lie in one folder, named by the SHA-256 of tenant and key, so that they can go with the session.
"""

import asyncio
import gzip
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

_UNFINISHED = ".unfinished"
_SUFFIX = ".jsonl.gz"
_PIECE_CHARACTERS = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A finished archive."""

    path: Path
    size_bytes: int
    written_at_s: float
    """Seconds since 1970."""


class Archives:
    """Owns the files of its folder, which is made with the first of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def write(
        self, tenant: str, session_key: str, session_id: str, lines: AsyncIterator[str], *, now: datetime
    ) -> Path:
        """Have the transcript on the disk: when this returns, its file was synced and read back. Raises OSError."""
        path = self._folder_of(tenant, session_key) / f"{session_id}{_SUFFIX}"
        unfinished = path.with_name(path.name + _UNFINISHED)
        digest = hashlib.sha256()
        file = await asyncio.to_thread(_open, unfinished)
        try:
            async for piece in _pieces(lines):
                digest.update(piece)
                await asyncio.to_thread(file.write, piece)
            await asyncio.to_thread(_finish, file, unfinished, path, digest.digest(), now)
        except BaseException:
            with suppress(OSError):
                file.close()
            _remove(unfinished)
            raise
        return path

    async def remove(self, path: Path) -> None:
        """One that was listed or written; nothing happens when it is gone."""
        await asyncio.to_thread(_remove, path)

    async def remove_all(self, tenant: str, session_key: str) -> None:
        """All of a session key."""
        folder = self._folder_of(tenant, session_key)
        for file in await asyncio.to_thread(_files, folder):
            await self.remove(file.path)

    async def oldest_first(self) -> list[ArchiveFile]:
        """All of all sessions. What an earlier process did not finish is removed; call it while nothing is written."""
        return await asyncio.to_thread(self._all)

    def _all(self) -> list[ArchiveFile]:
        for unfinished in self._folder.glob(f"*/*{_UNFINISHED}"):
            _remove(unfinished)
        found = [file for folder in self._folder.glob("*") for file in _files(folder)]
        return sorted(found, key=lambda file: (file.written_at_s, file.path.name))

    def _folder_of(self, tenant: str, session_key: str) -> Path:
        return self._folder / hashlib.sha256(f"{tenant}\0{session_key}".encode()).hexdigest()


async def _pieces(lines: AsyncIterator[str]) -> AsyncIterator[bytes]:
    """The lines with their line ends, many in one."""
    waiting: list[str] = []
    characters = 0
    async for line in lines:
        waiting += (line, "\n")
        characters += len(line)
        if characters >= _PIECE_CHARACTERS:
            yield "".join(waiting).encode()
            waiting, characters = [], 0
    yield "".join(waiting).encode()


def _open(path: Path) -> gzip.GzipFile:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return gzip.open(path, "wb", compresslevel=6)


def _finish(file: gzip.GzipFile, unfinished: Path, path: Path, digest: bytes, now: datetime) -> None:
    file.close()
    _sync(unfinished)
    _check(unfinished, digest)
    os.utime(unfinished, (now.timestamp(), now.timestamp()))
    unfinished.rename(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check(path: Path, digest: bytes) -> None:
    """Raises OSError when the file does not hold what was written."""
    found = hashlib.sha256()
    with gzip.open(path, "rb") as file:
        while piece := file.read(_PIECE_CHARACTERS):
            found.update(piece)
    if found.digest() != digest:
        raise OSError(f"{path} cannot be read back")


def _files(folder: Path) -> list[ArchiveFile]:
    found = []
    for path in folder.glob(f"*{_SUFFIX}"):
        with suppress(FileNotFoundError):
            stat = path.stat()
            found.append(ArchiveFile(path, stat.st_size, stat.st_mtime))
    return found


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    with suppress(OSError):  # others lie there
        path.parent.rmdir()
