"""Builds the grpc.aio server: services, health, reflection, limits, addresses. `app` starts and stops it.

GRPC_ENABLE_FORK_SUPPORT=0 must be in the environment before grpc is imported, which `app` sees to.
"""

import errno
import socket
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2_grpc

from laneway.v1 import admin_pb2, agent_pb2, session_pb2
from lanewayd.errors import StartupError
from lanewayd.rpc.admin import AdminHandlers
from lanewayd.rpc.agent import AgentHandlers
from lanewayd.rpc.health import HealthHandlers
from lanewayd.rpc.limits import MAX_RECEIVE_BYTES, MAX_SEND_BYTES
from lanewayd.rpc.methods import TenantResolver, service_handler
from lanewayd.rpc.reflection import reflection_handlers
from lanewayd.rpc.sessions import SessionHandlers
from lanewayd.telemetry.metrics import Metrics

MIN_PING_INTERVAL_MS = 9000
"""Clients that ping at most this often are welcome; after more than two too early pings gRPC ends the connection."""

_KEEPALIVE_TIME_MS = 30_000
_PING_TIMEOUT_MS = 10_000
_MAX_UNIX_PATH_BYTES = 107
_MAX_PORT = 65_535

_AGENT: ServiceDescriptor = agent_pb2.DESCRIPTOR.services_by_name["AgentService"]
_SESSION: ServiceDescriptor = session_pb2.DESCRIPTOR.services_by_name["SessionService"]
_ADMIN: ServiceDescriptor = admin_pb2.DESCRIPTOR.services_by_name["AdminService"]
_HEALTH_NAME = "grpc.health.v1.Health"

SERVICE_NAMES = (_AGENT.full_name, _SESSION.full_name, _ADMIN.full_name)
"""The services of the contract."""


def server_options(
    *, min_ping_interval_ms: int = MIN_PING_INTERVAL_MS, receive_bytes: int = MAX_RECEIVE_BYTES
) -> list[tuple[str, int]]:
    """The channel arguments of the server. Tests make the ping interval shorter."""
    return [
        # Else a second server shares the port silently.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", receive_bytes),
        ("grpc.max_send_message_length", MAX_SEND_BYTES),
        # Pings on a quiet stream are no abuse. `min_recv_ping_interval_without_data_ms` would be ignored.
        ("grpc.http2.min_ping_interval_without_data_ms", min_ping_interval_ms),
        ("grpc.keepalive_permit_without_calls", 1),
        # A peer that is frozen, or gone without a word, is dropped after 40 s.
        ("grpc.keepalive_time_ms", _KEEPALIVE_TIME_MS),
        ("grpc.http2.ping_timeout_ms", _PING_TIMEOUT_MS),
        # While a write to a frozen peer is stuck no ping leaves; TCP_USER_TIMEOUT ends it, which gRPC sets to this.
        ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_MS),
        ("grpc.http2.max_pings_without_data", 0),
    ]


def build_server(  # noqa: PLR0913 - the parts of one server
    *,
    agent: AgentHandlers,
    sessions: SessionHandlers,
    admin: AdminHandlers,
    health: HealthHandlers,
    tenant_of: TenantResolver,
    metrics: Metrics | None = None,
    options: Sequence[tuple[str, Any]] | None = None,
) -> grpc.aio.Server:
    """The server with all its services, without address. `health` must have been made with SERVICE_NAMES."""
    server = grpc.aio.server(options=list(server_options() if options is None else options))
    server.add_generic_rpc_handlers(
        (
            service_handler(_AGENT, agent, tenant_of, metrics=metrics),
            service_handler(_SESSION, sessions, tenant_of, metrics=metrics),
            service_handler(_ADMIN, admin, tenant_of, metrics=metrics),
            *reflection_handlers((*SERVICE_NAMES, _HEALTH_NAME)),
        )
    )
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    return server


def add_address(server: grpc.aio.Server, address: str) -> int:
    """Listen on `host:port` (port 0 = any free one) or `unix:/path`; the port, 1 for a socket file.

    Raises StartupError with advice when that is not possible. A socket file that nobody listens on is replaced.
    """
    if address.startswith("unix:"):
        _check_socket_path(Path(address.removeprefix("unix:")))
    else:
        _check_host_and_port(address)
    try:
        return server.add_insecure_port(address)
    except RuntimeError as error:
        raise _cannot_listen(address, "gRPC could not bind it") from error


def _cannot_listen(address: str, problem: str) -> StartupError:
    return StartupError(
        f"Cannot listen on {address}: {problem}. Choose another address with --listen or LANEWAY_LISTEN, as host:port "
        "or unix:/path."
    )


def _check_host_and_port(address: str) -> None:
    """Refuse what gRPC would take silently: a name of which only one of several addresses is free, a port above 65535
    (it counts modulo 65536)."""
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > _MAX_PORT:
        raise _cannot_listen(address, "that is no host and port")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise _cannot_listen(address, "there is no such host") from error
    problems = [problem for family, _, _, _, place in found if (problem := _bind_problem(family, place))]
    for problem in problems:
        if problem.errno == errno.EADDRINUSE:
            raise _cannot_listen(address, "another process listens there; stop it first") from problem
        if problem.errno == errno.EACCES:
            raise _cannot_listen(address, "this user is not permitted to") from problem
    if len(problems) == len(found):
        raise _cannot_listen(address, "that is no address of this machine") from problems[0]


def _bind_problem(family: int, place: Any) -> OSError | None:
    """Why a listener could not be bound to `place`; None when it could."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        return error
    return None


def _check_socket_path(path: Path) -> None:
    """Refuse what gRPC would do silently: it takes the socket file away from the server that listens on it."""
    if len(bytes(path)) > _MAX_UNIX_PATH_BYTES:
        raise _cannot_listen(f"unix:{path}", f"the path is longer than {_MAX_UNIX_PATH_BYTES} bytes")
    if not path.parent.is_dir():
        raise _cannot_listen(f"unix:{path}", f"the folder {path.parent} does not exist; create it first")
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise _cannot_listen(f"unix:{path}", "there is a file of this name that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        # A listener with a full backlog answers EAGAIN: it lives too.
        if probe.connect_ex(str(path)) in (0, errno.EAGAIN, errno.EINPROGRESS):
            raise _cannot_listen(f"unix:{path}", "another server listens there; stop it first")
