"""Telemetry collectors to be measured against: `python -m tests.benchmarks.collector MODE`; prints its port.

`healthy` takes what it gets. `slow` answers after longer than any exporter waits. `lying` answers by turns with bytes
that are no message, with a refusal that asks for a repetition, and with success. A dead one needs no process.
"""

import argparse
import asyncio
import itertools
from collections.abc import Awaitable, Callable

import grpc

SLOW_S = 60.0
GARBAGE = b"\xff\xff\xff\xff"

Answer = Callable[[bytes, grpc.aio.ServicerContext], Awaitable[bytes]]


async def _healthy(_request: bytes, _context: grpc.aio.ServicerContext) -> bytes:
    return b""


async def _slow(_request: bytes, _context: grpc.aio.ServicerContext) -> bytes:
    await asyncio.sleep(SLOW_S)
    return b""


def _lying() -> Answer:
    turns = itertools.count()

    async def answer(_request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        turn = next(turns) % 3
        if turn == 1:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "again, please")
        return GARBAGE if turn == 0 else b""

    return answer


class _Everything(grpc.GenericRpcHandler):
    """Every method of every service, by raw bytes."""

    def __init__(self, answer: Answer) -> None:
        self._handler: grpc.RpcMethodHandler = grpc.unary_unary_rpc_method_handler(answer)

    def service(self, _details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        return self._handler


async def serve(mode: str) -> None:
    """Until the process is ended."""
    answer = {"healthy": _healthy, "slow": _slow, "lying": _lying()}[mode]
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Everything(answer),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["healthy", "slow", "lying"])
    asyncio.run(serve(parser.parse_args().mode))
