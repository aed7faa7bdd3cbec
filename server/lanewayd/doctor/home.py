"""Looks at the home folder: can it be used, has it room, do its files come from the future, who holds it."""

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from lanewayd.doctor.findings import Finding, Level
from lanewayd.doctor.processes import Process, lock_holder, process_of

MIB = 1024 * 1024
_SUBFOLDERS = ("run", "scripts", "workspaces", "locks", "blobs", "archives")
_TOLERANCE_S = 5.0
"""File systems round times, and network disks have clocks of their own."""
_MOST_FILES = 5_000
_WARN_FACTOR = 5
_ELSEWHERE = "or choose another home with LANEWAY_HOME"


def look_at_home(home: Path) -> Sequence[Finding]:
    """Whether a server can use the folder: it is written to as a server would."""

    def fail(text: str, advice: str) -> list[Finding]:
        return [Finding("home", Level.FAIL, text, f"{advice}, {_ELSEWHERE}.")]

    place = _nearest_existing(home)
    if not place.exists():
        return fail(f"{place} is a link to {place.readlink()}, which does not exist", "Make that folder")
    if not place.is_dir():
        return fail(f"{place} is a file, and the home {home} must be a folder", "Move that file away")
    if place != home:
        if not os.access(place, os.W_OK | os.X_OK):
            return fail(f"{home} does not exist and cannot be made: {place} is not writable", f"Make {place} writable")
        return [Finding("home", Level.OK, f"{home} does not exist yet; the first server makes it")]
    for name in _SUBFOLDERS:
        if (home / name).exists() and not (home / name).is_dir():
            return fail(f"{home / name} is a file, and the server needs a folder of that name", "Move that file away")
    try:
        if not home.stat().st_mode & 0o222:
            raise PermissionError(0, "its mode forbids writing")
        skew_s = _write_trial(home)
    except OSError as error:
        return fail(f"{home} cannot be written to: {error.strerror}", "Make it writable for the server's user")
    findings = []
    if abs(skew_s) > _TOLERANCE_S:
        text = f"a file that is written to {home} now gets a time {_distance(skew_s)}"
        findings.append(Finding("clock", Level.WARN, text, "Set the clocks of this machine and its file server (NTP)."))
    if home.stat().st_mode & 0o007:
        text = f"{home} is writable, but other users of this machine can look into it"
        findings.append(Finding("home", Level.WARN, text, f"It holds all conversations: chmod 700 {home}"))
    else:
        findings.append(Finding("home", Level.OK, f"{home} is writable"))
    return findings


def _write_trial(folder: Path) -> float:
    """Write and sync a file that is gone afterwards; seconds by which the file system's clock is ahead."""
    before_s = time.time()
    with tempfile.TemporaryFile(prefix=".laneway-doctor-", dir=folder) as trial:
        trial.write(b"x" * 4096)
        trial.flush()
        os.fsync(trial.fileno())
        modified_s = os.fstat(trial.fileno()).st_mtime
    after_s = time.time()
    return modified_s - min(max(modified_s, before_s), after_s)


def look_at_disk(places: Iterable[Path], *, min_free_bytes: int) -> Sequence[Finding]:
    """Whether the file systems of `places` have room."""
    findings: dict[int, Finding] = {}
    for place in places:
        existing = _nearest_existing(place)
        if not existing.exists():
            existing = existing.parent  # a link to nowhere: what can be said is about its own disk
        device, disk = existing.stat().st_dev, os.statvfs(existing)
        free_bytes = disk.f_bavail * disk.f_frsize
        text = f"{_size(free_bytes)} free of {_size(disk.f_blocks * disk.f_frsize)} where {place} is"
        level = Level.OK
        if free_bytes < min_free_bytes * _WARN_FACTOR:
            level = Level.FAIL if free_bytes < min_free_bytes else Level.WARN
        if disk.f_files and disk.f_favail < 1_000:
            level, text = Level.FAIL, f"room for {disk.f_favail} more files only where {place} is"
        advice = (
            "A full disk stops the service. Make room, move the home (LANEWAY_HOME), or keep less: "
            "`events.retention.max_bytes`, `events.retention.max_age_days`."
        )
        findings.setdefault(device, Finding("disk", level, text, "" if level is Level.OK else advice))
    return list(findings.values())


def look_at_clock(home: Path) -> Sequence[Finding]:
    """Whether files in home were modified in the future: then the clock is wrong now, or was."""
    if not home.is_dir():
        return []
    now_s = time.time()
    ahead: list[tuple[float, Path]] = []
    for path in islice(_files_of(home), _MOST_FILES):
        with suppress(OSError):
            ahead_s = path.stat().st_mtime - now_s
            if ahead_s > _TOLERANCE_S:
                ahead.append((ahead_s, path))
    if not ahead:
        return [Finding("clock", Level.OK, "no file of the home is from the future")]
    ahead_s, path = max(ahead)
    others = f", and {len(ahead) - 1} more" if len(ahead) > 1 else ""
    text = f"{path} was modified {_distance(ahead_s)}{others}"
    advice = (
        f"This machine says it is {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC. If that is wrong, set the clock (NTP) "
        "before a server is started: what it stores gets wrong times. If it is right, the clock was ahead when the "
        "files were written, and retention keeps what was stored then for so much longer."
    )
    return [Finding("clock", Level.WARN, text, advice)]


def _files_of(home: Path) -> Iterable[Path]:
    """What the service itself writes; workspaces belong to the tools."""
    yield home
    for folder in (home, home / "run", home / "locks", home / "scripts", home / "blobs"):
        with suppress(OSError):
            yield from (path for path in folder.iterdir() if path.is_file() and not path.is_symlink())


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the home, and what it left word of."""

    process: Process | None
    """None: not seen from here, on another machine or in another container."""
    address: str = ""
    """Where it listens; empty while it is starting, and for what is no server."""
    host: str = ""

    def __str__(self) -> str:
        return str(self.process) if self.process else f"a process of {self.host or 'another machine or container'}"


def find_holder(home: Path) -> Holder | None:
    """Who holds the lock of the home; None if it is free."""
    note: dict[str, object] = {}
    with suppress(OSError, ValueError, AttributeError):
        note = dict(json.loads((home / "server.json").read_text()).items())
    lock_path = home / "server.lock"
    process = lock_holder(lock_path)
    if process is None:
        # Without a note there is no server that could be elsewhere: then nobody is disturbed by a trial.
        if not note or not _is_locked(lock_path):
            return None
        return Holder(None, str(note.get("address", "")), str(note.get("host", "")))
    if note.get("pid") == process.pid:
        return Holder(process, str(note.get("address", "")))
    return Holder(process)


def _is_locked(path: Path) -> bool:
    """Tries the lock for an instant."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def look_at_lock(home: Path, holder: Holder | None, *, answers: bool) -> Sequence[Finding]:
    """Whether a server can take the home. `answers`: what holds it is a server that works."""
    if holder is None:
        return [Finding("lock", Level.OK, "nobody holds the home")] if home.is_dir() else []
    if answers:
        return [Finding("lock", Level.OK, f"held by the running server: {holder}")]
    pid = holder.process.pid if holder.process else None
    stop = f"stop it (kill {pid})" if pid is not None and process_of(pid) else "stop it there"
    text = f"{home} is held by {holder}, and no server answers there"
    advice = f"No server can use this home meanwhile. If it is one that is just starting, wait; else {stop}"
    return [Finding("lock", Level.FAIL, text, f"{advice}, {_ELSEWHERE}.")]


def _nearest_existing(path: Path) -> Path:
    """The path or the nearest folder above it that is there; also a link to nowhere, because it is in the way."""
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    return path


def _distance(seconds: float) -> str:
    amount = abs(seconds)
    for unit, unit_s in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if amount >= 2 * unit_s:
            return f"{amount / unit_s:.0f} {unit} {'in the future' if seconds > 0 else 'in the past'}"
    return f"{amount:.0f} seconds {'in the future' if seconds > 0 else 'in the past'}"


def _size(size_bytes: float) -> str:
    gib = size_bytes / 2**30
    return f"{gib:.1f} GiB" if gib >= 1 else f"{size_bytes / MIB:.0f} MiB"
