"""What all floors need to be servers: an address, health, and to run until killed."""

import argparse
import asyncio
from collections.abc import Callable

import grpc
import uvloop
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

_OPTIONS = (("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", 32 * 1024 * 1024))


def run_floor(add_service: Callable[[grpc.aio.Server, argparse.Namespace], None]) -> None:
    """`--listen ADDRESS` and what the floor itself asks for: `--base-url` of the model, `--messages` to stream."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", required=True)
    parser.add_argument("--base-url", default="")
    parser.add_argument("--messages", default="")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(add_service, options))


async def _serve(
    add_service: Callable[[grpc.aio.Server, argparse.Namespace], None], options: argparse.Namespace
) -> None:
    server = grpc.aio.server(options=_OPTIONS)
    add_service(server, options)
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_insecure_port(options.listen)
    await server.start()
    await servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    await server.wait_for_termination()
