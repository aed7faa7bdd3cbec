"""Accepted means durable (D-1): acknowledged runs survive kills and power cuts, keys answer the same across them."""

from dataclasses import replace

import grpc
import pytest
from tests.fakes.model_server import ModelServer
from tests.fakes.service import refusal_of
from tests.processes.conftest import MakeServer

from laneway.v1 import agent_pb2

pytestmark = pytest.mark.timeout(180)


async def test_an_acknowledged_run_survives_a_power_cut(make_server: MakeServer, model: ModelServer) -> None:
    server = make_server(is_shadowed=True)
    await server.start()
    accepted = await server.accept("keep me", session_key="s", lane="closed")
    await server.restart(on_image=True)
    waited = await server.wait(accepted.run_id)
    assert waited.status == agent_pb2.WAIT_STATUS_OK
    assert waited.accepted_at == accepted.accepted_at


async def test_without_syncing_the_same_power_cut_loses_it(make_server: MakeServer, model: ModelServer) -> None:
    """The oracle of the tests above sees what `synchronous=OFF` would lose."""
    server = make_server(is_shadowed=True, is_synced=False)
    await server.start()
    accepted = await server.accept("lose me", session_key="s")
    server.extras = replace(server.extras, is_synced=True) if server.extras else None
    await server.restart(on_image=True)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await server.wait(accepted.run_id)
    assert refusal_of(caught.value).reason == "RUN_NOT_FOUND"
