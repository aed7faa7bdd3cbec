"""Waits for the end of a run over servers that limit waits, leave, restart or stand still."""

from typing import Any

from laneway.calls import Caller
from laneway.errors import LanewayError
from laneway.retries import Losses
from laneway.v1 import agent_pb2, run_pb2

ENDED_STATES = frozenset(
    {
        run_pb2.RUN_STATE_SUCCEEDED,
        run_pb2.RUN_STATE_FAILED,
        run_pb2.RUN_STATE_CANCELLED,
        run_pb2.RUN_STATE_TIMED_OUT,
    }
)
"""The states that a run never leaves."""

_DEADLINE_SHARE = 1.02
"""gRPC rounds deadlines, and a server that sees one nearer than the wait answers early."""


async def wait_for_end(caller: Caller, method: Any, run_id: str, timeout_s: float | None) -> agent_pb2.WaitResponse:
    """What LanewayClient.wait promises. `method` is Wait of the stub."""
    timeouts = caller.timeouts
    began = caller.now()
    # With a timeout all time counts, without one only that in which no server was found.
    losses = Losses(timeouts.patience_s) if timeout_s is None else Losses(timeout_s + timeouts.attempt_s, since=began)
    leaving = 0
    while True:
        left_s = timeouts.one_wait_s if timeout_s is None else max(0.0, began + timeout_s - caller.now())
        part_s = min(left_s, timeouts.one_wait_s)
        request = agent_pb2.WaitRequest(run_id=run_id)
        request.timeout.FromNanoseconds(int(part_s * 1e9))
        limit_s = part_s * _DEADLINE_SHARE + timeouts.attempt_s
        if timeout_s is not None:
            limit_s = min(limit_s, began + losses.patience_s - caller.now())
        try:
            answer: agent_pb2.WaitResponse = await caller.once(method, request, limit_s=limit_s)
        except LanewayError as error:
            await caller.pause(losses, error)
            continue
        if answer.state in ENDED_STATES or (timeout_s is not None and caller.now() - began >= timeout_s):
            return answer
        if timeout_s is None:
            losses.contact()
        if answer.timeout_kind == agent_pb2.TIMEOUT_KIND_DRAINING:
            leaving += 1
            await caller.rest(leaving, at_most_s=left_s)
