"""A subscriber that leaves at random and comes back where it was, by `after_seq` or cursor."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import grpc
from tests.processes.observers import LOST, is_terminal
from tests.soak.events.connections import Connection
from tests.soak.events.record import SharedRecord

from laneway.v1 import agent_pb2, event_pb2

_FULL = agent_pb2.VERBOSITY_FULL


class Subscriber:
    """Follows one run to its end, or a session or everything until cancelled. Checks its own order."""

    def __init__(
        self,
        who: str,
        request: agent_pb2.SubscribeRequest,
        record: SharedRecord,
        connection: Connection,
        *,
        chance: random.Random,
        stay_events: int,
        on_end: Callable[[str], None] = lambda _run_id: None,
    ) -> None:
        """It leaves after `stay_events` events on average. `on_end`: it has seen the end of a run."""
        self._who = who
        self._request = request
        request.verbose = _FULL
        self._is_of_run = bool(request.run_id)
        self._record = record
        self._connection = connection
        self._chance = chance
        self._stay_events = stay_events
        self._on_end = on_end
        self._next: dict[str, int] = {}
        """Run -> the seq that must come next; ended runs have none."""
        self._ended: set[str] = set()
        self.cancelled = 0
        self.lost = 0

    async def follow(self) -> None:
        """Subscribe again and again; a run's subscriber returns after its end."""
        while not (self._is_of_run and self._ended):
            call = self._connection.subscribe(self._request)
            stay = 1 + int(self._chance.expovariate(1 / self._stay_events))
            try:
                await self._read(call, stay)
            except grpc.aio.AioRpcError as error:
                if error.code() not in LOST:
                    self._record.say(f"{self._who} was told {error.code()}: {error.details()}")
                    return
                self.lost += 1
            except asyncio.CancelledError:
                # Closing a channel cancels its calls, which says nothing of this task.
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
                self.lost += 1
            finally:
                call.cancel()

    async def _read(self, call: Any, stay: int) -> None:
        async for encoded in call:
            event = event_pb2.Event.FromString(encoded)
            if not event.seq:
                continue
            self._take(event, encoded)
            stay -= 1
            if not stay:
                self.cancelled += 1
                return

    def _take(self, event: event_pb2.Event, encoded: bytes) -> None:
        run_id, seq = event.run_id, event.seq
        if run_id in self._ended:
            self._record.say(f"{self._who} got {run_id} {seq} after the end")
            return
        expected = self._next.get(run_id, 1)
        if seq != expected:
            self._record.say(f"{self._who} got {run_id} {seq} instead of {expected}")
        self._next[run_id] = seq + 1
        if self._is_of_run:
            self._request.after_seq = seq
        else:
            self._request.cursor = event.cursor
        self._record.see(self._who, event, encoded)
        if is_terminal(event):
            del self._next[run_id]
            self._ended.add(run_id)
            self._on_end(run_id)
