"""The load driver's view of AgentService: the calls of one run, with as little work around them as possible."""

import itertools
import time
from dataclasses import dataclass, field
from typing import Any

import grpc

from laneway.v1 import agent_pb2, event_pb2, run_pb2

_OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 32 * 1024 * 1024))
_LAST_PHASES = (event_pb2.LIFECYCLE_PHASE_END, event_pb2.LIFECYCLE_PHASE_ERROR)
_SERVICE = "/laneway.v1.AgentService/"
_numbers = itertools.count()


@dataclass(slots=True)
class Seen:
    """What one subscription got of a run. Times are seconds of the monotonic clock."""

    first_delta_at: float = 0.0
    ended_at: float = 0.0
    messages: int = 0
    text: list[str] = field(default_factory=list)
    has_succeeded: bool = False


class AgentClient:
    """One connection."""

    def __init__(self, target: str) -> None:
        self._channel = grpc.aio.insecure_channel(target, options=_OPTIONS)
        self._agent: Any = self._channel.unary_unary(
            _SERVICE + "Agent",
            request_serializer=agent_pb2.AgentRequest.SerializeToString,
            response_deserializer=run_pb2.AgentResponse.FromString,
        )
        self._subscribe: Any = self._channel.unary_stream(
            _SERVICE + "Subscribe", request_serializer=agent_pb2.SubscribeRequest.SerializeToString
        )
        self._wait: Any = self._channel.unary_unary(
            _SERVICE + "Wait", request_serializer=agent_pb2.WaitRequest.SerializeToString
        )

    async def accept(self, model: str, *, session_key: str = "") -> str:
        """Start a run with one tool offered; its id. A fresh session unless `session_key` is given."""
        message = f"message {next(_numbers)}: tell me what the reader of the log sees of it"
        request = agent_pb2.AgentRequest(
            message=message, model=f"mock/{model}", session_key=session_key, tools_allow=["noop"]
        )
        return str((await self._agent(request)).run_id)

    async def follow(self, run_id: str) -> Seen:
        """Read a run's log to its end."""
        seen = Seen()
        call = self._subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0))
        async for encoded in call:
            event = event_pb2.Event.FromString(encoded)
            seen.messages += 1
            if event.HasField("assistant"):
                seen.first_delta_at = seen.first_delta_at or time.perf_counter()
                seen.text.append(event.assistant.delta)
            elif event.HasField("lifecycle") and event.lifecycle.phase in _LAST_PHASES:
                seen.has_succeeded = event.lifecycle.state == run_pb2.RUN_STATE_SUCCEEDED
        seen.ended_at = time.perf_counter()
        return seen

    def read_raw(self, **fields: Any) -> Any:
        """Subscribe; the call gives encoded events."""
        return self._subscribe(agent_pb2.SubscribeRequest(**fields))

    async def wait(self, run_id: str) -> None:
        """Return when the run has ended."""
        await self._wait(agent_pb2.WaitRequest(run_id=run_id))

    async def close(self) -> None:
        await self._channel.close()
