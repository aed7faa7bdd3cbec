"""Which processes live, seen from outside: by a mark that their command lines carry."""

import uuid
from contextlib import suppress
from pathlib import Path


def new_mark() -> str:
    """A number of seconds for `sleep` that nobody else sleeps: it makes a command line recognisable."""
    return f"{300 + uuid.uuid4().int % 10**9}"


def living(mark: str) -> list[int]:
    """Processes with the mark in their arguments."""
    return [pid for pid, arguments, _ in _processes() if any(mark in argument for argument in arguments)]


def zombies_of(parent: int) -> list[int]:
    """Children of a process that are dead and not reaped."""
    return [pid for pid, _, stat in _processes() if stat[0] == "Z" and int(stat[1]) == parent]


def _processes() -> list[tuple[int, list[str], list[str]]]:
    """(pid, arguments, fields of stat from the state on)."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):  # it has just ended
            if folder.name.isdigit():
                arguments = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                stat = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                found.append((int(folder.name), arguments, stat))
    return found


def peak_memory_bytes(*, restart: bool = False) -> int:
    """The most memory that this process had resident since the last restart of the count. Source: proc(5)."""
    if restart:
        Path("/proc/self/clear_refs").write_text("5")
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel does not say")
