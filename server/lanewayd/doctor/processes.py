"""Who holds a lock or listens somewhere, as the kernel tells it in /proc. Takes and opens nothing itself."""

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_PROC = Path("/proc")
_LISTENING = "0A"
"""The state in /proc/net/tcp."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process of this machine."""

    pid: int
    name: str
    started_at: datetime | None

    def __str__(self) -> str:
        since = f", since {self.started_at.astimezone():%Y-%m-%d %H:%M:%S}" if self.started_at else ""
        return f"pid {self.pid} ({self.name}){since}"


def process_of(pid: int) -> Process | None:
    """The process, None if there is none or it is not seen from here. Its arguments may hold secrets: not read."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    name, fields = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
    started_at = None
    with suppress(OSError, StopIteration, ValueError):
        lines = (_PROC / "stat").read_text().splitlines()
        boot_s = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
        started_at = datetime.fromtimestamp(boot_s + int(fields[19]) / os.sysconf("SC_CLK_TCK"), UTC)
    return Process(pid, name, started_at)


def lock_holder(path: Path) -> Process | None:
    """Who holds a lock on the file; None if nobody does that is seen from here. Source: proc_locks(5)."""
    try:
        status = path.stat()
        locks = (_PROC / "locks").read_text()
    except OSError:
        return None
    for line in locks.splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[1] == "->":  # one that waits
            continue
        pid, (major, minor, inode) = int(fields[4]), fields[5].split(":")
        if int(inode) != status.st_ino:
            continue
        # Layered file systems have device numbers of their own there: then what the process has open decides.
        if os.makedev(int(major, 16), int(minor, 16)) == status.st_dev or _has_open(pid, status):
            return process_of(pid) or Process(pid, "not seen from here", None)
    return None


def tcp_listener(port: int) -> Process | None:
    """Who listens on the TCP port; None if nobody does or it is not seen from here."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(fields[9])
    return _owner_of(inodes)


def unix_listener(path: str) -> Process | None:
    """Who listens on the socket; None if nobody does or it is not seen from here."""
    with suppress(OSError):
        lines = [line.split(maxsplit=7) for line in (_PROC / "net" / "unix").read_text().splitlines()[1:]]
        return _owner_of({fields[6] for fields in lines if len(fields) == 8 and fields[7] == path})
    return None


def accepts(address: str, *, limit_s: float) -> bool:
    """Whether something accepts connections at `host:port` or `unix:PATH`."""
    try:
        if address.startswith("unix:"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(limit_s)
                probe.connect(address.removeprefix("unix:"))
        else:
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), limit_s).close()
    except OSError:
        return False
    return True


def _owner_of(socket_inodes: set[str]) -> Process | None:
    wanted = {f"socket:[{inode}]" for inode in socket_inodes}
    if not wanted:
        return None
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and any(link in wanted for link in _open_files(entry)):
            return process_of(int(entry.name))
    return None


def _open_files(process: Path) -> Iterator[str]:
    with suppress(OSError):  # another user's, or gone
        for link in (process / "fd").iterdir():
            with suppress(OSError):
                yield str(link.readlink())


def _has_open(pid: int, status: os.stat_result) -> bool:
    with suppress(OSError):
        for link in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                opened = link.stat()
                if (opened.st_dev, opened.st_ino) == (status.st_dev, status.st_ino):
                    return True
    return False
