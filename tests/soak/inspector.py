"""Looks into a server from inside its process, on request: what the allocators hold, and how many objects of each class
live. A line on stdin asks, a notice on stdout answers. At the end of stdin whoever started the server is gone, and the
server ends itself."""

import ctypes
import gc
import os
import re
import signal
import sys
import threading
from collections import Counter
from typing import Any

from tests.processes.failpoints import notice

_COUNTED_MODULES = ("lanewayd.", "laneway.", "grpc.", "_asyncio", "asyncio.")


def start_inspector() -> None:
    """Answer from a thread of its own until stdin ends."""
    threading.Thread(target=_answer_requests, name="inspector", daemon=True).start()


def _answer_requests() -> None:
    for number, _line in enumerate(sys.stdin):
        notice(inspection=number, **inspect_process())
    os.kill(os.getpid(), signal.SIGKILL)


def inspect_process() -> dict[str, Any]:
    """Bytes that malloc has given out, blocks that Python has, living objects by class."""
    gc.collect()
    classes = Counter(map(type, gc.get_objects()))
    objects = {
        f"{kind.__module__}.{kind.__qualname__}": count
        for kind, count in classes.items()
        if str(kind.__module__).startswith(_COUNTED_MODULES)
    }
    return {"heap_bytes": heap_bytes(), "python_blocks": sys.getallocatedblocks(), "objects": objects}


def heap_bytes() -> int:
    """What malloc has given out and not got back, over all its arenas. Source: malloc_info(3)."""
    libc = ctypes.CDLL(None)
    libc.open_memstream.restype = ctypes.c_void_p
    text, size = ctypes.c_char_p(), ctypes.c_size_t()
    stream = ctypes.c_void_p(libc.open_memstream(ctypes.byref(text), ctypes.byref(size)))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    report = (text.value or b"").decode()
    libc.free(text)
    # Behind the arenas stand the totals.
    totals = report[report.rindex("</heap>") :]

    def total(pattern: str) -> int:
        found = re.search(pattern + r'[^>]*size="(\d+)"', totals)
        return int(found[1]) if found else 0

    free = total('<total type="fast"') + total('<total type="rest"')
    return total('<system type="current"') - free + total('<total type="mmap"')
