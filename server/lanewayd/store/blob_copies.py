"""Copies the files of attachments: each is named by its SHA-256, never changes, and goes with its last reference."""

import hashlib
import os
import re
import shutil
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

_BLOB_NAME = re.compile(r"[0-9a-f]{64}")


class BlobCopies:
    """The blobs of a store in the folder of a backup, which always holds at least what the backup names.

    So the backup that was there before stays whole until the new one has its name. Owns the list of what it added.
    """

    def __init__(self, source: Path, target: Path) -> None:
        self.target = target
        self._source = source
        self._added: list[Path] = []
        self._is_new = not target.exists()

    def copy_all(self) -> None:
        """Copy every blob that is there and not copied yet."""
        for name, file in _blobs_in(self._source).items():
            self._copy(name, file)

    def complete(self, named: AbstractSet[str]) -> list[str]:
        """Copy what is missing of `named`; what is nowhere, sorted."""
        copied = set(_blobs_in(self.target))
        present = _blobs_in(self._source)
        return [name for name in sorted(named - copied) if name not in present or not self._copy(name, present[name])]

    def forget_others(self, named: AbstractSet[str]) -> None:
        """Remove what the backup does not name."""
        for name, file in _blobs_in(self.target).items():
            if name not in named:
                file.unlink(missing_ok=True)
        if self.target.is_dir():
            with suppress(OSError):  # not empty
                self.target.rmdir()

    def undo(self) -> None:
        """Remove what was added."""
        for file in self._added:
            file.unlink(missing_ok=True)
        if self._is_new:
            shutil.rmtree(self.target, ignore_errors=True)

    def _copy(self, name: str, file: Path) -> bool:
        """False: it is gone, or it is not what its name says."""
        place = self.target / name
        if place.exists():
            return True
        self.target.mkdir(mode=0o700, exist_ok=True)
        unfinished = place.with_suffix(".unfinished")
        try:
            with file.open("rb") as reading, unfinished.open("wb") as writing:
                shutil.copyfileobj(reading, writing)
                writing.flush()
                os.fsync(writing.fileno())
            with unfinished.open("rb") as copied:
                if hashlib.file_digest(copied, "sha256").hexdigest() != name:
                    return False
        except FileNotFoundError:
            return False
        else:
            unfinished.rename(place)
            self._added.append(place)
            return True
        finally:
            unfinished.unlink(missing_ok=True)


def _blobs_in(folder: Path) -> dict[str, Path]:
    """Name -> file, wherever they lie below `folder`."""
    if not folder.is_dir():
        return {}
    return {file.name: file for file in folder.rglob("*") if _BLOB_NAME.fullmatch(file.name) and file.is_file()}
