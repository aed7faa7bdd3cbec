"""Clients that read logs over all kills and remember the bytes of every event they ever saw."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc

from laneway.v1 import agent_pb2, event_pb2

_SUBSCRIBE = "/laneway.v1.AgentService/Subscribe"
# CANCELLED, without a reason, is what gRPC itself answers to calls that arrive while its server stops.
LOST = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
"""How a call ends whose server has gone; it can be made again."""
_TERMINAL = (event_pb2.LIFECYCLE_PHASE_END, event_pb2.LIFECYCLE_PHASE_ERROR)


def is_terminal(event: event_pb2.Event) -> bool:
    """END or ERROR."""
    return event.WhichOneof("payload") == "lifecycle" and event.lifecycle.phase in _TERMINAL


@dataclass
class Sightings:
    """What all observers have seen. Whoever sees something else for the same (run, seq) is a violation."""

    events: dict[str, dict[int, bytes]] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    count: int = 0
    """Of events, each once, whoever saw it first."""
    on_event: Callable[[event_pb2.Event], None] = lambda _event: None

    def see(self, who: str, event: event_pb2.Event, encoded: bytes) -> None:
        """Compare with what others saw."""
        log = self.events.setdefault(event.run_id, {})
        known = log.setdefault(event.seq, encoded)
        if known != encoded:
            other = event_pb2.Event.FromString(known)
            self.violations.append(f"{who} saw {event.run_id} {event.seq} as {event}, another one as {other}")
        elif known is encoded:
            self.count += 1
            self.on_event(event)

    def log(self, run_id: str) -> list[event_pb2.Event]:
        """The events of a run in order."""
        return [event_pb2.Event.FromString(encoded) for _, encoded in sorted(self.events.get(run_id, {}).items())]


class Observer:
    """One subscription that is taken up again with its cursor whenever its connection is lost."""

    def __init__(
        self,
        who: str,
        sightings: Sightings,
        channel: grpc.aio.Channel,
        *,
        run_id: str = "",
        session_key: str = "",
        cursor: str = "",
    ) -> None:
        """Of a run (ends with it), a session, or everything after `cursor`."""
        self._who = who
        self._sightings = sightings
        self._run_id = run_id
        self._session_key = session_key
        self._cursor = cursor
        self._seqs: dict[str, int] = {}
        self._ended: set[str] = set()
        # Identity on the way in: the bytes as they came.
        self._subscribe: Any = channel.unary_stream(
            _SUBSCRIBE, request_serializer=agent_pb2.SubscribeRequest.SerializeToString
        )

    async def follow(self) -> None:
        """Until the run has ended; for a session and everything until cancelled."""
        while not (self._run_id and self._ended):
            call = self._subscribe(self._request(), wait_for_ready=True)
            try:
                async for encoded in call:
                    self._take(encoded)
            except grpc.aio.AioRpcError as error:
                if error.code() not in LOST:
                    self._sightings.violations.append(f"{self._who} was told {error.code()}: {error.details()}")
                    return
            finally:
                call.cancel()

    def _request(self) -> agent_pb2.SubscribeRequest:
        request = agent_pb2.SubscribeRequest(verbose=agent_pb2.VERBOSITY_FULL)
        if self._run_id:
            request.run_id = self._run_id
            request.after_seq = self._seqs.get(self._run_id, 0)
            return request
        if self._session_key:
            request.session_key = self._session_key
        else:
            request.all = True
        request.cursor = self._cursor
        return request

    def _take(self, encoded: bytes) -> None:
        event = event_pb2.Event.FromString(encoded)
        if not event.seq:
            return
        self._cursor = event.cursor
        expected = self._seqs.get(event.run_id, 0) + 1
        if event.seq != expected:
            self._sightings.violations.append(f"{self._who} got {event.run_id} {event.seq} instead of {expected}")
        if event.run_id in self._ended:
            self._sightings.violations.append(f"{self._who} got {event.run_id} {event.seq} after the end")
        self._seqs[event.run_id] = event.seq
        if is_terminal(event):
            self._ended.add(event.run_id)
        self._sightings.see(self._who, event, encoded)
