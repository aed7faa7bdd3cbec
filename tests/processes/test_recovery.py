"""Recovery gives up the run that kills the server, and no other (D-2)."""

import asyncio

import grpc
import pytest
from tests.fakes.model_answers import calls_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.server_process import ServerProcess
from tests.processes.conftest import MakeServer

from laneway.v1 import agent_pb2, run_pb2

pytestmark = pytest.mark.timeout(240)

HEALTHY = 16


async def _restarted_until_ended(server: ServerProcess, run_id: str) -> tuple[agent_pb2.WaitResponse, int]:
    """Start the server whenever it has died, until the run has ended; its end and how often the server died."""
    request = agent_pb2.WaitRequest(run_id=run_id)
    request.timeout.FromSeconds(120)
    deaths = 0
    while True:
        waiting = asyncio.ensure_future(server.agent.Wait(request, wait_for_ready=True))
        exited = asyncio.ensure_future(server.exited())
        await asyncio.wait({waiting, exited}, return_when=asyncio.FIRST_COMPLETED)
        if exited.done():
            deaths += 1
            assert deaths < 10
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await server.launch()
            continue
        exited.cancel()
        try:
            return await waiting, deaths
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.UNAVAILABLE  # noqa: PT017 - it dies under the call


@pytest.mark.parametrize("tool", ["again", "ledger"])
async def test_the_run_that_kills_the_server_is_given_up_alone(
    make_server: MakeServer, model: ModelServer, tool: str
) -> None:
    """`again` is idempotent, so each recovery runs the deadly call anew; `ledger` is not, but the model insists."""
    server = make_server(toml="[agents.defaults]\nmax_concurrent = 32\n")
    model.answer(*(calls_answer((tool, {"token": f"{n}", "then": "die"})) for n in range(8)), model="poison")
    await server.start()
    healthy = [
        (await server.accept("work", model="mock/tokens-10-5-tools-2", tools_allow=["ledger"])).run_id
        for _ in range(HEALTHY)
    ]
    poisoned = (await server.accept("poison", model="mock/poison", tools_allow=[tool])).run_id

    ended, deaths = await _restarted_until_ended(server, poisoned)

    assert (ended.state, ended.error.reason) == (run_pb2.RUN_STATE_FAILED, "RECOVERY_EXHAUSTED")
    assert deaths == 4  # once by itself, and once for each of the three attempts
    for run_id in healthy:
        waited = await server.wait(run_id)
        assert waited.state == run_pb2.RUN_STATE_SUCCEEDED, waited
