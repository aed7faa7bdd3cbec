"""A fork is there whole after a kill and a power cut, or not at all; repeating it tells which (D-1)."""

import grpc
import pytest
from tests.fakes.model_server import ModelServer
from tests.processes.conftest import MakeServer
from tests.processes.failpoints import Failpoint

from laneway.v1 import session_pb2

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_fork_is_whole_or_not_there(make_server: MakeServer, model: ModelServer, side: str) -> None:
    server = make_server(is_shadowed=True, failpoint=Failpoint(side, "ForkSession"))
    await server.start()
    for word in ("one", "two"):
        await server.wait((await server.accept(word, session_key="s", model="mock/any")).run_id)
    request = session_pb2.ForkSessionRequest(session_key="s", new_session_key="fork")
    with pytest.raises(grpc.aio.AioRpcError):
        await server.sessions.ForkSession(request)
    await server.exited()
    server.lose_power()
    server.extras = None
    await server.start()
    answer = await server.sessions.ForkSession(request)
    assert (answer.duplicate, answer.entries) == ((True, 0) if side == "after" else (False, 4))
    page = await server.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key="fork"))
    assert len(page.entries) == 4
    await server.wait((await server.accept("three", session_key="fork", model="mock/any")).run_id)
    said = [message["content"] for message in model.requests[-1].messages[1:]]
    assert said == ["one", "ok", "two", "ok", "three"]
