"""Looks at the address a server would listen on."""

import errno
import os
import socket
import stat
from collections.abc import Sequence
from pathlib import Path

from lanewayd.doctor.findings import Finding, Level
from lanewayd.doctor.processes import Process, accepts, tcp_listener, unix_listener

_CONNECT_S = 2.0


def look_at_address(listen: str, *, own_address: str, is_starting: bool) -> Sequence[Finding]:
    """Whether `listen` is free. `own_address` is where the server that holds the home listens, if there is one.

    `is_starting`: somebody who holds the home may take the address any moment, so it is not tried.
    """
    if own_address and _same(listen, own_address):
        return [Finding("listen", Level.OK, f"{listen}: the running server")]
    if listen.startswith("unix:"):
        return _look_at_socket(listen.removeprefix("unix:").removeprefix("//"))
    host, _, port_text = listen.rpartition(":")
    port = int(port_text)
    if port == 0:
        return [Finding("listen", Level.OK, f"{listen}: any free port")]
    if accepts(listen, limit_s=_CONNECT_S):
        return [_in_use(listen, tcp_listener(port))]
    if is_starting:
        return []
    try:
        _bind(host.strip("[]"), port)
    except socket.gaierror as error:
        text = f"the host of {listen} has no address: {error.strerror}"
        return [Finding("listen", Level.FAIL, text, "Listen on an address of this machine: --listen, LANEWAY_LISTEN.")]
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return [_in_use(listen, tcp_listener(port))]
        text = f"a server cannot listen on {listen}: {error.strerror}"
        return [
            Finding("listen", Level.FAIL, text, "Choose another address or port: --listen HOST:PORT, LANEWAY_LISTEN.")
        ]
    return [Finding("listen", Level.OK, f"{listen} is free")]


def _look_at_socket(path_text: str) -> Sequence[Finding]:
    path, listen = Path(path_text), f"unix:{path_text}"
    if accepts(listen, limit_s=_CONNECT_S):
        return [_in_use(listen, unix_listener(path_text))]
    advice = "Choose another path: --listen unix:PATH, LANEWAY_LISTEN."
    if os.path.lexists(path) and not stat.S_ISSOCK(path.lstat().st_mode):
        return [Finding("listen", Level.FAIL, f"{path} is there and no socket", f"Move it away. {advice}")]
    if path.parent.name != "run" and not path.parent.is_dir():  # `run` in home is made by the server
        return [Finding("listen", Level.FAIL, f"the folder of the socket, {path.parent}, does not exist", advice)]
    return [Finding("listen", Level.OK, f"{listen} is free")]


def _in_use(listen: str, process: Process | None) -> Finding:
    who = str(process) if process else "a process that is not seen from here (another user's or container's)"
    advice = (
        f"Stop it{f' (kill {process.pid})' if process else ''}, or give this server another address: "
        "--listen HOST:PORT, LANEWAY_LISTEN; clients then need --address or LANEWAY_ADDRESS."
    )
    return Finding("listen", Level.FAIL, f"{listen} is in use by {who}", advice)


def _bind(host: str, port: int) -> None:
    """Take the address for an instant, as a server does."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        trial.bind(address)


def _same(listen: str, address: str) -> bool:
    """The same place in two spellings: hosts of this machine are not told apart when the port is the same."""
    if listen.startswith("unix:") or address.startswith("unix:"):
        return listen.replace("unix://", "unix:") == address.replace("unix://", "unix:")
    return listen.rpartition(":")[2] == address.rpartition(":")[2]
