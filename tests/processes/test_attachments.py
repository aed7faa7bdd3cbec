"""Files that came with an acknowledged message are there after a kill and a power cut (D-1)."""

import base64
from dataclasses import replace

import grpc
import pytest
from tests.fakes.model_server import ModelServer
from tests.processes.conftest import MakeServer
from tests.processes.failpoints import Failpoint

from laneway.v1 import agent_pb2, run_pb2

pytestmark = pytest.mark.timeout(120)

NOTES = b"remember the milk"


@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_file_survives_with_its_message_or_goes_with_it(
    make_server: MakeServer, model: ModelServer, side: str
) -> None:
    server = make_server(is_shadowed=True, failpoint=Failpoint(side, "accept"))
    await server.start()
    attachment = agent_pb2.Attachment(name="notes.txt", mime_type="text/plain", data=NOTES)
    fields = {"session_key": "s", "idempotency_key": "k", "attachments": [attachment]}
    with pytest.raises(grpc.aio.AioRpcError):
        await server.accept("read this", **fields)
    await server.exited()
    server.lose_power()
    assert server.extras is not None
    server.extras = replace(server.extras, failpoint=None)
    await server.start()

    accepted = await server.accept("read this", **fields)
    assert accepted.duplicate is (side == "after")
    assert (await server.wait(accepted.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    assert [file.read_bytes() for file in (server.home / "blobs").iterdir()] == [NOTES]
    assert NOTES.decode() in str(model.requests[-1].messages[-1])
    assert base64.b64encode(NOTES).decode() not in str(model.requests[-1].messages[-1])
