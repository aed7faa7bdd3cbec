"""grpc.health.v1.Health: readiness of the service and of each of its services, and liveness of the process.

Not the servicer of grpcio-health-checking: it lacks List, and its Watch holds a lock while it writes, so that one
watcher that does not read would hold up every change.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lanewayd.rpc.methods import Context

LIVENESS = "laneway.liveness"
"""SERVING as long as the process is there, also while it drains."""

_Status = health_pb2.HealthCheckResponse


class HealthHandlers(health_pb2_grpc.HealthServicer):
    """Readiness under "" and each name in `services`, NOT_SERVING until `set_ready(True)`; liveness under its own name.

    `set_ready` is the only way to change a status; call it on the event loop's thread.
    """

    def __init__(self, services: Iterable[str]) -> None:
        self._readiness_names = ("", *services)
        self._is_ready = False
        self._is_closed = False
        self._changed = asyncio.Event()

    def close(self) -> None:
        """The server stops: watchers end, so that they do not hold it up."""
        self._is_closed = True
        self._changed.set()

    def set_ready(self, is_ready: bool) -> None:
        """Turn readiness to SERVING or NOT_SERVING and tell all watchers."""
        if is_ready is self._is_ready:
            return
        self._is_ready = is_ready
        # Watchers keep the event they wait for; each change has its own, so that none is missed.
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def Check(self, request: health_pb2.HealthCheckRequest, context: Context) -> health_pb2.HealthCheckResponse:
        status = self._status(request.service)
        if status == _Status.SERVICE_UNKNOWN:
            await context.abort(grpc.StatusCode.NOT_FOUND, "There is no service of this name.")
        return _Status(status=status)

    async def List(self, request: Any, context: Context) -> Any:
        names = (*self._readiness_names, LIVENESS)
        statuses = {name: _Status(status=self._status(name)) for name in names}
        # The annotations of grpcio-health-checking do not know List yet.
        return health_pb2.HealthListResponse(statuses=statuses)  # type: ignore[attr-defined]

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: Context) -> None:
        sent = None
        while True:
            changed = self._changed  # taken before the status, so that no change is missed
            status = self._status(request.service)
            if status != sent:
                await context.write(_Status(status=status))
                sent = status
                continue  # it may have changed while it was written
            if self._is_closed:  # asked last: who watches hears NOT_SERVING also from a server that leaves at once
                return
            await changed.wait()

    def _status(self, name: str) -> int:
        if name == LIVENESS:
            return _Status.SERVING
        if name not in self._readiness_names:
            return _Status.SERVICE_UNKNOWN
        return _Status.SERVING if self._is_ready else _Status.NOT_SERVING
