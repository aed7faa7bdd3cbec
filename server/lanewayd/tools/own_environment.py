"""Hiding the service's own environment from the processes it starts.

An allow-list for children is not enough: a process may read /proc/<pid>/environ of its parent, where the kernel shows
the environment a process was started with. That memory is ours, so its values are overwritten. `os.environ` is a copy
and keeps them, and getenv finds copies of its own.
"""

import ctypes
import os
from pathlib import Path

# What C libraries look up late, what children get anyway, and the marks by which left-over processes are found.
_KEPT_NAMES = (
    "PATH HOME LANG TERM TMPDIR TZ SSL_CERT_FILE SSL_CERT_DIR OPENSSL_CONF LANEWAY_OWNER LANEWAY_RUN_ID LANEWAY_CALL_ID"
)
_KEPT = frozenset(_KEPT_NAMES.split())
_KEPT_PREFIXES = ("LC_", "LD_", "GRPC_", "MALLOC_", "PYTHON")
_ENV_START_FIELD = 50
_ENV_END_FIELD = 51
_MOST_BYTES = 8 * 1024 * 1024


def hide_own_environment() -> int:
    """Blank the values other processes could read; returns how many. Call once, early, on the main thread.

    Names stay visible. 0 where the kernel does not say where the values are. Source: proc(5), env_start and env_end.
    """
    line = Path("/proc/self/stat").read_bytes()
    fields = line[line.rindex(b")") + 2 :].split()
    # The first of these is field 3.
    start, end = int(fields[_ENV_START_FIELD - 3]), int(fields[_ENV_END_FIELD - 3])
    if not 0 < end - start <= _MOST_BYTES or Path("/proc/self/environ").read_bytes() != ctypes.string_at(
        start, end - start
    ):
        return 0
    hidden_count = 0
    at = start
    for name_in_use, value_in_use in os.environb.items():
        # setenv moves the value elsewhere: preloaded libraries, for one, call getenv whenever they like.
        os.environb[name_in_use] = value_in_use
    for entry in ctypes.string_at(start, end - start).split(b"\x00"):
        name, assignment, value = entry.partition(b"=")
        if assignment and value and not _is_kept(os.fsdecode(name)):
            ctypes.memset(at + len(name) + 1, 0, len(value))
            hidden_count += 1
        at += len(entry) + 1
    return hidden_count


def _is_kept(name: str) -> bool:
    return name in _KEPT or name.startswith(_KEPT_PREFIXES)
