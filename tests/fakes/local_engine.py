"""The process of the embedded model, as a test sees it: found among the children of a server."""

import asyncio
import os
from pathlib import Path

ENGINE_MODULE = "lanewayd.providers.local.engine"


def engines_of(server_pid: int) -> list[int]:
    """Numbers of the engine processes that are children of this server and alive."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_text().split("\0")
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if ENGINE_MODULE in arguments and int(fields[1]) == server_pid and fields[0] not in "ZX":
            found.append(int(folder.name))
    return found


def engine_of(server_pid: int) -> int:
    """The one there is."""
    [pid] = engines_of(server_pid)
    return pid


async def death_of(pidfd: int) -> None:
    """Wait for the end of a process and close its pidfd."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(pidfd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)
