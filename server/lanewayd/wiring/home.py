"""The home folder and its lock: one server at a time (D-9)."""

import json
import os
import socket
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from lanewayd.errors import StartupError

_PRIVATE = 0o700


class Home:
    """A home that this process holds, from `open` until `close`."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        """For `open` only."""
        self.path = path
        self._lock = lock
        self._note = path / "server.json"

    @classmethod
    def open(cls, path: Path) -> "Home":
        """Make the folder if it is missing and take its lock, without waiting.

        Raises StartupError: held by another server (which is named), or not writable.
        """
        try:
            path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            if not os.access(path, os.W_OK) or not path.stat().st_mode & 0o222:
                raise PermissionError(f"{path} is read-only")
            for name in ("run", "scripts", "workspaces"):
                (path / name).mkdir(mode=_PRIVATE, exist_ok=True)
            lock = FileLock(
                path / "server.lock", timeout=0, thread_local=False, fallback_to_soft=False, is_singleton=False
            )
            lock.acquire()
        except Timeout as error:
            raise StartupError(
                f"another server uses the home {path}: {_holder(path)}. Stop it, or give this one a home of its own "
                "with LANEWAY_HOME"
            ) from error
        except OSError as error:
            raise StartupError(
                f"the home {path} cannot be used: {error.strerror or error}. Make it writable, or choose another one "
                "with LANEWAY_HOME"
            ) from error
        return cls(path, lock)

    def note_address(self, address: str) -> None:
        """Leave a note of this server, for error messages and for those who look for it."""
        note = {"pid": os.getpid(), "host": socket.gethostname(), "address": address}
        unfinished = self._note.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(note))
        unfinished.rename(self._note)

    def close(self) -> None:
        """Give the home back. Idempotent."""
        if self._lock.is_locked:
            with suppress(OSError):
                self._note.unlink()
            self._lock.release()


def _holder(path: Path) -> str:
    try:
        note = json.loads((path / "server.json").read_text())
        return f"pid {int(note['pid'])} on {note['host']}, listening on {note['address']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "it is just starting or stopping"
