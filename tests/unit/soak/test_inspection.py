"""tests/soak: what is told of a server's memory is true, and what grows in it is named."""

import asyncio
import ctypes
import gc

from tests.soak.inspected_server import grown_objects
from tests.soak.inspector import heap_bytes, inspect_process

BLOCK_BYTES, BLOCKS = 96, 200_000
"""So much that what other threads of the tests' process do meanwhile does not matter."""


def test_bytes_that_malloc_has_given_out_are_counted_and_those_given_back_are_not() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    gc.collect()
    before = heap_bytes()
    blocks = [ctypes.c_void_p(libc.malloc(BLOCK_BYTES)) for _ in range(BLOCKS)]
    held = heap_bytes() - before
    for block in blocks:
        libc.free(block)
    del blocks
    assert held > 0.9 * BLOCK_BYTES * BLOCKS
    assert heap_bytes() - before < held / 2


async def test_living_objects_are_counted_by_class() -> None:
    name = "asyncio.locks.Event"
    before = inspect_process()["objects"].get(name, 0)
    events = [asyncio.Event() for _ in range(50)]
    during = inspect_process()["objects"]
    assert during[name] - before == 50
    assert grown_objects({name: before}, {name: during[name]}, allowed=12) == [
        f"50 objects more of {name}: {during[name]}"
    ]
    assert grown_objects({name: before}, {name: during[name]}, allowed=12, kept={name: during[name]}) == []
    del events
    assert grown_objects({name: before}, inspect_process()["objects"], allowed=10**6) == []
