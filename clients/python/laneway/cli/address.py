"""Which server a command talks to, and whether one listens there."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from laneway.cli.exits import CliError, ExitCode

DEFAULT_ADDRESS = "127.0.0.1:50551"
_PROBE_TIMEOUT_S = 1.0
_UNIX_PATH_BYTES = 107
"""The kernel's limit for the path of a socket."""


@dataclass(frozen=True, slots=True)
class Target:
    """An address in gRPC's spelling. `is_chosen`: a person named it, so that nothing else will do."""

    address: str
    is_chosen: bool


def home_of(environ: Mapping[str, str]) -> Path:
    """The home of the server, absolute: LANEWAY_HOME, else ~/.laneway."""
    named = environ.get("LANEWAY_HOME") or "~/.laneway"
    if named == "~" or named.startswith("~/"):
        return Path(environ.get("HOME") or Path.home()) / named[2:]
    return Path.cwd() / named


def socket_path(home: Path) -> Path:
    """Where the server that `laneway agent` starts listens. Raises CliError when the kernel allows no such path."""
    path = home / "run" / "laneway.sock"
    if len(os.fsencode(path)) > _UNIX_PATH_BYTES:
        raise CliError(f"the path {path} is too long for a socket: choose a shorter LANEWAY_HOME", ExitCode.USAGE)
    return path


def find_target(option: str | None, environ: Mapping[str, str]) -> Target:
    """`--address`, else LANEWAY_ADDRESS, else the socket in home if it is live, else 127.0.0.1:50551."""
    named = option or environ.get("LANEWAY_ADDRESS")
    if named:
        return Target(named, is_chosen=True)
    path = home_of(environ) / "run" / "laneway.sock"
    if len(os.fsencode(path)) <= _UNIX_PATH_BYTES and is_live(f"unix:{path}"):
        return Target(f"unix:{path}", is_chosen=False)
    return Target(DEFAULT_ADDRESS, is_chosen=False)


def is_live(address: str) -> bool:
    """Whether something accepts connections at a `unix:` or `host:port` address."""
    try:
        if address.startswith("unix:"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(_PROBE_TIMEOUT_S)
                probe.connect(address.removeprefix("unix:"))
        else:
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), _PROBE_TIMEOUT_S).close()
    except OSError:
        return False
    return True
