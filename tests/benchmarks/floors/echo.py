"""Floor "echo": a raw grpc.aio unary call that answers what it is given."""

import argparse
from typing import Any

import grpc
from tests.benchmarks.floors.serving import run_floor


async def _echo(request: bytes, _context: object) -> bytes:
    return request


def _add(server: grpc.aio.Server, _options: argparse.Namespace) -> None:
    handlers: dict[str, Any] = {"Echo": grpc.unary_unary_rpc_method_handler(_echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("floor.Echo", handlers),))


if __name__ == "__main__":
    run_floor(_add)
