"""Reflection under both names, with a stub and with the real grpcurl."""

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha import reflection_pb2

from lanewayd.rpc.server import SERVICE_NAMES

_NAMES = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"]
_GRPCURL = Path(sys.executable).parent / "grpcurl"


async def _ask(channel: grpc.aio.Channel, name: str, **fields: Any) -> Any:
    method: Any = channel.stream_stream(
        f"/{name}/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    call = method()
    await call.write(reflection_pb2.ServerReflectionRequest(**fields))
    answer = await call.read()
    await call.done_writing()
    return answer


@pytest.mark.parametrize("name", _NAMES)
async def test_both_versions_list_all_services(channel: grpc.aio.Channel, name: str) -> None:
    answer = await _ask(channel, name, list_services="")
    listed = [service.name for service in answer.list_services_response.service]
    assert sorted(listed) == sorted([*SERVICE_NAMES, "grpc.health.v1.Health", *_NAMES])


@pytest.mark.parametrize("symbol", ["laneway.v1.AgentService", "laneway.v1.AgentService.Wait", "laneway.v1.Agent"])
@pytest.mark.parametrize("name", _NAMES)
async def test_both_versions_give_the_file_of_a_symbol(channel: grpc.aio.Channel, name: str, symbol: str) -> None:
    answer = await _ask(channel, name, file_containing_symbol=symbol)
    files = [FileDescriptorProto.FromString(text) for text in answer.file_descriptor_response.file_descriptor_proto]
    assert "laneway/v1/agent.proto" in [file.name for file in files]


@pytest.mark.parametrize("symbol", ["laneway.v1.AgentService.Nope", "nowhere.Service", "nothing"])
async def test_an_unknown_symbol_is_an_answer_not_a_failure(channel: grpc.aio.Channel, symbol: str) -> None:
    answer = await _ask(channel, _NAMES[0], file_containing_symbol=symbol)
    assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


@pytest.mark.skipif(not _GRPCURL.exists() and shutil.which("grpcurl") is None, reason="grpcurl runs on x86-64 only")
async def test_grpcurl_lists_describes_and_calls(channel: grpc.aio.Channel, socket_folder: Path) -> None:
    async def grpcurl(*arguments: str) -> str:
        command = [str(_GRPCURL if _GRPCURL.exists() else "grpcurl"), "-plaintext", "-unix", *arguments]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()
        return output.decode()

    address = f"{socket_folder}/s"
    assert set(SERVICE_NAMES) <= set((await grpcurl(address, "list")).split())
    assert "rpc Wait ( .laneway.v1.WaitRequest )" in await grpcurl(address, "describe", "laneway.v1.AgentService")
    answer = await grpcurl("-d", '{"message": "Hello"}', address, "laneway.v1.AgentService/Agent")
    assert '"run_1"' in answer
