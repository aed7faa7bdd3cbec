"""Abort is final (D-20): after its answer nothing of the run happens any more, also across a kill."""

import asyncio
from dataclasses import replace

import grpc
import pytest
from tests.fakes.model_answers import Answer, calls_answer, delta
from tests.fakes.model_server import ModelServer
from tests.fakes.server_process import ServerProcess
from tests.processes.conftest import MakeServer
from tests.processes.failpoints import Failpoint
from tests.processes.ledger_tools import read_ledger

from laneway.v1 import agent_pb2, event_pb2, run_pb2, session_pb2

pytestmark = pytest.mark.timeout(180)

CANCELLED = run_pb2.RUN_STATE_CANCELLED


async def _all_that_is_there(server: ServerProcess, run_id: str, session_key: str) -> tuple[int, int, int]:
    """Events, entries, ledger lines."""
    events = await server.events(run_id)
    page = await server.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key=session_key))
    return len(events), len(page.entries), len(read_ledger(server.ledger))


async def test_a_kill_right_after_the_answer_changes_nothing(make_server: MakeServer, model: ModelServer) -> None:
    server = make_server(is_shadowed=True)
    await server.start()
    model.answer(calls_answer(("ledger", {"token": "a", "then": "hang"}), ("again", {"token": "b"})))
    accepted = await server.accept("go", session_key="s")
    await server.notice("effect", "a")
    receipt = await server.agent.Abort(agent_pb2.AbortRequest(run_id=accepted.run_id))
    assert list(receipt.aborted_run_ids) == [accepted.run_id]
    answered = await _all_that_is_there(server, accepted.run_id, accepted.session_key)
    log = await server.events(accepted.run_id)

    await server.restart(on_image=True)

    # Whatever recovery might have begun again would be ahead of this run of the same session.
    later = await server.accept("next", session_key="s")
    assert (await server.wait(later.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    waited = await server.wait(accepted.run_id)
    assert (waited.state, waited.stop_reason) == (CANCELLED, "rpc")
    assert await server.events(accepted.run_id) == log
    events, entries, lines = await _all_that_is_there(server, accepted.run_id, accepted.session_key)
    assert (events, lines) == (answered[0], answered[2])
    assert entries == answered[1] + 2
    assert len(model.requests) == 2


async def test_an_interruption_that_was_acknowledged_survives_a_kill(
    make_server: MakeServer, model: ModelServer
) -> None:
    server = make_server(failpoint=Failpoint("after", "accept", nth=2))
    await server.start()
    model.answer(Answer([delta(content="half a "), asyncio.Event()]))
    old = await server.accept("go", session_key="s")
    await server.event(old.run_id, lambda event: event.WhichOneof("payload") == "assistant")
    mode = agent_pb2.QUEUE_MODE_INTERRUPT
    with pytest.raises(grpc.aio.AioRpcError):
        await server.accept("instead", session_key="s", queue_mode=mode, idempotency_key="k")
    await server.exited()
    assert server.extras is not None
    server.extras = replace(server.extras, failpoint=None)
    await server.start()

    new = await server.accept("instead", session_key="s", queue_mode=mode, idempotency_key="k")
    assert (new.duplicate, new.disposition) == (True, run_pb2.DISPOSITION_INTERRUPTED_PREVIOUS)
    waited = await server.wait(old.run_id)
    assert (waited.state, waited.stop_reason) == (CANCELLED, "interrupt")
    assert (await server.wait(new.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    assert len(model.requests) == 2


async def test_a_requested_abort_is_carried_out_by_the_next_start(make_server: MakeServer, model: ModelServer) -> None:
    """What was shown of the open message is void, since nobody is left who could end it."""
    server = make_server(failpoint=Failpoint("after", "abort"))
    await server.start()
    model.answer(Answer([delta(content="half a "), asyncio.Event()]))
    accepted = await server.accept("go", session_key="s")
    shown = await server.event(accepted.run_id, lambda event: event.WhichOneof("payload") == "assistant")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await server.agent.Abort(agent_pb2.AbortRequest(run_id=accepted.run_id))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    await server.exited()
    assert server.extras is not None
    server.extras = replace(server.extras, failpoint=None)
    await server.start()

    waited = await server.wait(accepted.run_id)
    assert (waited.state, waited.stop_reason) == (CANCELLED, "rpc")
    *_, recovered, end = await server.events(accepted.run_id)
    assert recovered.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_RECOVERED
    assert recovered.lifecycle.void_message_id == shown.assistant.message_id
    assert end.lifecycle.cancelled
    assert len(model.requests) == 1


async def test_a_stop_that_was_acknowledged_survives_a_kill_and_is_answered_once(
    make_server: MakeServer, model: ModelServer
) -> None:
    """Killed behind the commit that stops, before its caller hears of it."""
    server = make_server(failpoint=Failpoint("after", "accept", nth=3))
    await server.start()
    model.answer(Answer([delta(content="half a "), asyncio.Event()]))
    running = await server.accept("go", session_key="s")
    await server.event(running.run_id, lambda event: event.WhichOneof("payload") == "assistant")
    waiting = await server.accept("then this", session_key="s")
    request = agent_pb2.AgentRequest(message="/stop", session_key="s", idempotency_key="stop")
    with pytest.raises(grpc.aio.AioRpcError):
        await server.agent.Agent(request)
    await server.exited()
    assert server.extras is not None
    server.extras = replace(server.extras, failpoint=None)
    await server.start()
    for run in (running, waiting):
        waited = await server.wait(run.run_id)
        assert (waited.state, waited.stop_reason) == (CANCELLED, "stop_word")
    later = await server.accept("next", session_key="s")
    again = await server.agent.Agent(request)
    assert (again.duplicate, again.disposition) == (True, run_pb2.DISPOSITION_COMPLETED)
    assert again.reply == "The run at work is being stopped. 1 waiting message is cancelled."
    assert (await server.wait(later.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
