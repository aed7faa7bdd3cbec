"""What a process and its descendants use, read from /proc. Source: proc(5)."""

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/PID/stat behind the command's name, counted from 0: state is the first.
_PARENT, _USER, _SYSTEM, _REAPED_USER, _REAPED_SYSTEM, _PAGES = 1, 11, 12, 13, 14, 21


def cpu_s(pid: int) -> float:
    """CPU seconds that the process, its living descendants and those they have reaped used since they began."""
    fields = [stat for stat in map(_stat, _tree(pid)) if stat]
    ticks = sum(int(stat[at]) for stat in fields for at in (_USER, _SYSTEM, _REAPED_USER, _REAPED_SYSTEM))
    return ticks / _TICKS_PER_S


def rss_mb(pid: int) -> float:
    """Resident memory of the process and its living descendants, in MB of 10^6 bytes."""
    pages = sum(int(stat[_PAGES]) for stat in map(_stat, _tree(pid)) if stat)
    return pages * _PAGE_BYTES / 1e6


def _tree(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (stat := _stat(int(folder.name))):
            parents[int(folder.name)] = int(stat[_PARENT])
    tree = [pid]
    for member in tree:
        tree += [child for child, parent in parents.items() if parent == member]
    return tree


def _stat(pid: int) -> list[str]:
    """The fields behind the name; empty for a process that is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()
