"""What the command line adds to the client: it tells of losses, and does not start servers where it must not."""

from contextlib import AsyncExitStack

from tests.unit.cli.fake_service import RUN_ID, FakeService, serving, usual_run

from laneway.cli.connection import Connection
from laneway.v1 import agent_pb2

LOG = agent_pb2.SubscribeRequest(run_id=RUN_ID, after_seq=0)


async def test_losses_are_told_and_the_stream_goes_on(service: FakeService, address: str) -> None:
    service.cuts = [3, 0, 0, 2]
    notices: list[str] = []
    async with Connection(address, {}, say=notices.append) as connection:
        assert [event async for event in connection.client.subscribe(LOG)] == usual_run()
    assert set(notices) == {"connection lost, trying again"}
    assert [request.after_seq for request in service.subscribe_requests] == [0, 3, 3, 3, 5]


async def test_no_server_is_started_at_an_address_that_a_person_chose(address: str) -> None:
    first, second = FakeService(cuts=[4]), FakeService()
    notices: list[str] = []
    async with AsyncExitStack() as stack:
        async with serving(first, address):
            connection = await stack.enter_async_context(Connection(address, {}, may_start=True, say=notices.append))
            events = connection.client.subscribe(LOG)
            seen = [await anext(events) for _ in range(4)]
        async with serving(second, address):
            seen += [event async for event in events]
    assert seen == usual_run()
    assert second.subscribe_requests[0].after_seq == 4
    assert set(notices) == {"connection lost, trying again"}
