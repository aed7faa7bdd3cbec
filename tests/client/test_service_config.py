"""The recommended service configs: whole, and obeyed by gRPC itself as docs/clients.md says."""

import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.client.scripted_service import LOST, RUN_ID, ScriptedService, Silence, accepted, piece, serving

from laneway.v1 import admin_pb2, admin_pb2_grpc, agent_pb2, agent_pb2_grpc, run_pb2, session_pb2

CLIENTS = Path(__file__).parents[2] / "clients"
PLAIN, KEYED = CLIENTS / "service_config.json", CLIENTS / "service_config.keyed.json"
WITH_KEY = {"laneway.v1.AgentService/Agent", "laneway.v1.AgentService/RunAgent"}


def settings(path: Path) -> dict[str, dict[str, Any]]:
    """Full method name -> what the file says for it."""
    by_method: dict[str, dict[str, Any]] = {}
    for config in json.loads(path.read_text())["methodConfig"]:
        said = {key: value for key, value in config.items() if key != "name"}
        for name in config["name"]:
            method = f"{name['service']}/{name['method']}"
            assert method not in by_method
            by_method[method] = said
    return by_method


@pytest.mark.parametrize("path", [PLAIN, KEYED], ids=lambda path: path.name)
def test_every_method_of_the_contract_is_named_once(path: Path) -> None:
    services = [
        service
        for module in (agent_pb2, session_pb2, admin_pb2)
        for service in module.DESCRIPTOR.services_by_name.values()
    ]
    methods = {f"{service.full_name}/{method.name}" for service in services for method in service.methods}
    assert settings(path).keys() == methods


def test_the_second_file_repeats_messages_and_is_the_same_else() -> None:
    plain, keyed = settings(PLAIN), settings(KEYED)
    assert {method for method in plain if plain[method] != keyed[method]} == WITH_KEY
    assert all(keyed[method] == {**plain[method], "retryPolicy": keyed[method]["retryPolicy"]} for method in WITH_KEY)


def test_what_could_meet_something_else_the_second_time_is_never_repeated() -> None:
    for path in (PLAIN, KEYED):
        repeated = {method.partition("/")[2] for method, said in settings(path).items() if "retryPolicy" in said}
        changes = {"Abort", "ResetSession", "DeleteSession", "ForkSession", "Drain"}
        assert repeated & {*changes, "ExportSession", "ImportSession"} == set()
    assert "Agent" not in {
        method.partition("/")[2] for method, said in settings(PLAIN).items() if "retryPolicy" in said
    }


def test_what_waits_for_a_server_has_a_deadline() -> None:
    for said in (*settings(PLAIN).values(), *settings(KEYED).values()):
        assert "timeout" in said or not said.get("waitForReady")


def channel_with(path: Path, address: str) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(address, options=[("grpc.service_config", path.read_text())])


async def test_grpc_repeats_reads_and_subscriptions(script: ScriptedService) -> None:
    script.script["GetRun"] = [[LOST], [LOST], [run_pb2.Run(run_id=RUN_ID)]]
    script.script["Subscribe"] = [[LOST], [piece(1), LOST]]
    async with serving(script) as address, channel_with(PLAIN, address) as channel:
        stub = agent_pb2_grpc.AgentServiceStub(channel)
        assert (await stub.GetRun(agent_pb2.GetRunRequest(run_id=RUN_ID))).run_id == RUN_ID
        # Not behind the first event: that is for the caller, who knows where he stands.
        events = aiter(stub.Subscribe(agent_pb2.SubscribeRequest(run_id=RUN_ID, after_seq=0)))
        assert await anext(events) == piece(1)
        with pytest.raises(grpc.aio.AioRpcError):
            await anext(events)


@pytest.mark.parametrize(("path", "calls"), [(PLAIN, 1), (KEYED, 2)], ids=["plain", "keyed"])
async def test_grpc_repeats_messages_with_the_second_file_only(script: ScriptedService, path: Path, calls: int) -> None:
    script.script["Agent"] = [[LOST], [accepted()]]
    async with serving(script) as address, channel_with(path, address) as channel:
        stub = agent_pb2_grpc.AgentServiceStub(channel)
        request = agent_pb2.AgentRequest(message="hello", idempotency_key="k")
        if calls == 1:
            with pytest.raises(grpc.aio.AioRpcError):
                await stub.Agent(request)
        else:
            assert await stub.Agent(request) == accepted()
    assert len(script.requests["Agent"]) == calls


async def test_grpc_makes_a_drain_once(script: ScriptedService) -> None:
    script.script["Drain"] = [[LOST], [Silence()]]
    async with serving(script) as address, channel_with(KEYED, address) as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await admin_pb2_grpc.AdminServiceStub(channel).Drain(admin_pb2.DrainRequest())
    assert len(script.requests["Drain"]) == 1
