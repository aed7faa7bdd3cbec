"""A client as a process of its own, to be stopped: `python -m tests.processes.reader TARGET CURSOR RUNS`.

Reads everything after CURSOR until RUNS runs have ended or it is told that something is gone. Prints `reading` after
the first event, at the end one JSON line: how it ended, events, bytes, and what was not in order.
"""

import asyncio
import json
import os
import sys

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc
from tests.fakes.service import refusal_of
from tests.processes.observers import is_terminal

from laneway.v1 import agent_pb2, agent_pb2_grpc


async def read(target: str, cursor: str, runs: int) -> dict[str, object]:
    """What came of it."""
    seqs: dict[str, int] = {}
    disorder: list[str] = []
    events, size_bytes, ended, reason = 0, 0, 0, ""
    async with grpc.aio.insecure_channel(target) as channel:
        call = agent_pb2_grpc.AgentServiceStub(channel).Subscribe(agent_pb2.SubscribeRequest(all=True, cursor=cursor))
        try:
            async for event in call:
                if events == 0:
                    print("reading", flush=True)
                events, size_bytes = events + 1, size_bytes + event.ByteSize()
                if event.seq != seqs.get(event.run_id, 0) + 1:
                    disorder.append(f"{event.run_id} {event.seq}")
                seqs[event.run_id] = event.seq
                ended += is_terminal(event)
                if ended == runs:
                    reason = "all ended"
                    break
        except grpc.aio.AioRpcError as error:
            reason = refusal_of(error).reason
        finally:
            call.cancel()
    return {"reason": reason, "events": events, "bytes": size_bytes, "ended": ended, "disorder": disorder}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(read(sys.argv[1], sys.argv[2], int(sys.argv[3])))), flush=True)
