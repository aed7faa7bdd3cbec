"""Floor "stream": a raw grpc.aio server stream of the messages in the file `--messages`, a hexadecimal line each."""

import argparse
from pathlib import Path
from typing import Any

import grpc
from tests.benchmarks.floors.serving import run_floor


def _add(server: grpc.aio.Server, options: argparse.Namespace) -> None:
    messages = [bytes.fromhex(line) for line in Path(options.messages).read_text().split()]

    async def stream(_request: bytes, context: Any) -> None:
        for message in messages:
            await context.write(message)

    handlers: dict[str, Any] = {"Stream": grpc.unary_stream_rpc_method_handler(stream)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("floor.Stream", handlers),))


if __name__ == "__main__":
    run_floor(_add)
