"""A server that is killed while a run waits for its next try: the run goes on after the restart."""

import pytest
from tests.fakes.model_answers import failure, text_answer
from tests.fakes.model_server import ModelServer
from tests.processes.conftest import MakeServer

from laneway.v1 import event_pb2, run_pb2

pytestmark = pytest.mark.timeout(120)


async def test_a_run_killed_in_the_middle_of_a_back_off_recovers_and_answers(
    make_server: MakeServer, model: ModelServer
) -> None:
    server = make_server()
    await server.start()
    model.answer(failure(503, None, {"retry-after": "60"}))
    run_id = (await server.accept("go", session_key="s")).run_id
    retry = await server.event(run_id, lambda event: event.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_RETRY)
    assert retry.lifecycle.delay.seconds == 60
    assert (await server.wait(run_id, 0)).error_pending

    await server.kill()
    model.answer(text_answer("after all"))
    await server.start()

    waited = await server.wait(run_id)
    assert waited.state == run_pb2.RUN_STATE_SUCCEEDED
    assert [payload.text for payload in waited.payloads] == ["after all"]
    events = await server.events(run_id)
    phases = [event.lifecycle.phase for event in events if event.WhichOneof("payload") == "lifecycle"]
    assert phases == [
        event_pb2.LIFECYCLE_PHASE_START,
        event_pb2.LIFECYCLE_PHASE_RETRY,
        event_pb2.LIFECYCLE_PHASE_RECOVERED,
        event_pb2.LIFECYCLE_PHASE_END,
    ]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
