from collections.abc import AsyncIterator

import grpc
import pytest
from tests.unit.cli.fake_service import RUN_ID, FakeService, refusal, serving, usual_run

from laneway.cli.connection import Connection
from laneway.cli.exits import CliError, ExitCode
from laneway.cli.follow import Persistence, events_of
from laneway.v1 import agent_pb2


@pytest.fixture
async def persistence(service: FakeService, address: str) -> AsyncIterator[Persistence]:
    async with Connection(address, {}) as connection:
        yield Persistence(connection)


async def test_events_come_once_and_in_order_over_lost_connections(
    service: FakeService, persistence: Persistence
) -> None:
    service.cuts = [0, 3, 0, 2]
    notices: list[str] = []
    persistence.notice = notices.append
    assert [event async for event in events_of(persistence, RUN_ID)] == usual_run()
    assert [request.after_seq for request in service.subscribe_requests] == [0, 0, 3, 3, 5]
    assert all(request.HasField("after_seq") for request in service.subscribe_requests)
    assert notices


async def test_tool_results_are_asked_for(service: FakeService, persistence: Persistence) -> None:
    async for _ in events_of(persistence, RUN_ID):
        pass
    assert service.subscribe_requests[0].verbose == agent_pb2.VERBOSITY_FULL


async def test_a_stream_that_ends_without_a_terminal_event_is_taken_up_again(
    service: FakeService, persistence: Persistence
) -> None:
    end = service.events.pop()
    stream = events_of(persistence, RUN_ID)
    seen = [await anext(stream) for _ in service.events]
    service.events.append(end)
    assert [*seen, *[event async for event in stream]] == usual_run()


async def test_a_server_that_comes_back_is_found_again(address: str) -> None:
    first, second = FakeService(cuts=[4]), FakeService()
    connection = Connection(address, {})
    stream = events_of(Persistence(connection), RUN_ID)
    async with serving(first, address):
        await connection.renew()
        seen = [await anext(stream) for _ in range(4)]
    async with serving(second, address):
        seen += [event async for event in stream]
    await connection.close()
    assert seen == usual_run()
    assert second.subscribe_requests[0].after_seq == 4


async def test_patience_ends(service: FakeService, persistence: Persistence) -> None:
    service.cuts = [0, 0]
    persistence.patience_s = 0
    with pytest.raises(CliError, match="connection reset") as caught:
        await anext(events_of(persistence, RUN_ID))
    assert caught.value.exit_code is ExitCode.NO_SERVER


async def test_a_refusal_is_not_repeated(service: FakeService, persistence: Persistence) -> None:
    service.agent_refusals = [refusal(grpc.StatusCode.INVALID_ARGUMENT, "MESSAGE_EMPTY", "the message is empty")]
    request = agent_pb2.AgentRequest()
    with pytest.raises(CliError, match="the message is empty"):
        await persistence.call(lambda: persistence.connection.agent.Agent(request))
    assert len(service.agent_requests) == 1


async def test_a_lost_answer_is_asked_for_again_with_the_same_key(
    service: FakeService, persistence: Persistence
) -> None:
    service.agent_refusals = [refusal(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE", "unknown")]
    request = agent_pb2.AgentRequest(message="hi", idempotency_key="k")
    response = await persistence.call(lambda: persistence.connection.agent.Agent(request))
    assert response.run_id == RUN_ID
    assert service.agent_requests == [request, request]
