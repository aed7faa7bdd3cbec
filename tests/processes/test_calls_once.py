"""No started tool call runs twice, and none has an effect before it is in the transcript (D-2)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.commit_gates import HoldingGate
from tests.fakes.model_answers import calls_answer, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.server_process import ServerProcess
from tests.fakes.service import running_service
from tests.processes.conftest import MakeServer
from tests.processes.failpoints import Failpoint, kinds_of
from tests.processes.ledger_tools import read_ledger
from tests.processes.reading import is_recovery, results_of

from laneway.v1 import agent_pb2, run_pb2
from lanewayd.app import Seams
from lanewayd.clock import SystemClock
from lanewayd.transcript.lock import SessionLocks

pytestmark = pytest.mark.timeout(180)


async def test_an_idempotent_call_waits_until_it_is_in_the_transcript(tmp_path: Path, model: ModelServer) -> None:
    tool = RecordingTool("again", is_idempotent=True)
    gate = HoldingGate(lambda command: "call requested" in kinds_of(command))
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(commit_gate=gate)) as service:
        model.answer(calls_answer(("again", {})), text_answer("done"))
        run_id = (await service.accept()).run_id
        await gate.reached()
        # A round trip through the reader's thread: a call that does not wait would have begun long before.
        await service.agent.GetRun(agent_pb2.GetRunRequest(run_id=run_id))
        early = list(tool.calls)
        gate.release()
        waited = await service.wait(run_id)
    assert early == []
    assert waited.status == agent_pb2.WAIT_STATUS_OK
    assert len(tool.calls) == 1


async def _killed_at(server: ServerProcess, failpoint: Failpoint, model: ModelServer, *calls: tuple[str, str]) -> str:
    """Start, run one message whose answer makes `calls` (tool, token), let the failpoint kill; restart; the run."""
    assert server.extras is not None
    server.extras = replace(server.extras, failpoint=failpoint)
    await server.start()
    model.answer(calls_answer(*((tool, {"token": token}) for tool, token in calls)))
    run_id = (await server.accept("go", session_key="s")).run_id
    await server.exited()
    server.lose_power()
    server.extras = replace(server.extras, failpoint=None)
    await server.start()
    waited = await server.wait(run_id)
    assert waited.state == run_pb2.RUN_STATE_SUCCEEDED
    return run_id


def _effects(server: ServerProcess) -> list[str]:
    return [line.token for line in read_ledger(server.ledger) if line.what == "effect"]


async def test_a_requested_call_is_run_by_the_next_start(make_server: MakeServer, model: ModelServer) -> None:
    """Of two calls that run one after the other the second was only requested when the first was killed."""
    server = make_server()
    await server.start()
    model.answer(calls_answer(("turns", {"token": "a", "then": "hang"}), ("turns", {"token": "b"})))
    run_id = (await server.accept("go", session_key="s")).run_id
    await server.notice("effect", "a")
    await server.restart()
    assert (await server.wait(run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    assert _effects(server) == ["a", "b"]
    assert await results_of(server, "s") == {"a": "TOOL_OUTCOME_UNKNOWN", "b": "TOOL_OUTCOME_OK"}
    # The answer that asked for the calls was not asked for again.
    assert len(model.requests) == 2


async def test_a_launch_that_was_not_stored_has_not_happened(make_server: MakeServer, model: ModelServer) -> None:
    """Message and launch travel together here, so the model is asked again."""
    server = make_server(is_shadowed=True)
    model.answer(calls_answer(("ledger", {"token": "lost"})))
    await _killed_at(server, Failpoint("before", "call launched"), model, ("ledger", "a"))
    assert _effects(server) == ["a"]
    assert await results_of(server, "s") == {"a": "TOOL_OUTCOME_OK"}


async def test_a_launched_call_is_not_run_again_but_an_idempotent_one_is(
    make_server: MakeServer, model: ModelServer
) -> None:
    """Killed when the launch is durable and nobody knows whether the tools have begun."""
    server = make_server(is_shadowed=True)
    run_id = await _killed_at(server, Failpoint("after", "call launched"), model, ("ledger", "a"), ("again", "b"))
    assert _effects(server) == ["b"]
    assert await results_of(server, "s") == {"a": "TOOL_OUTCOME_UNKNOWN", "b": "TOOL_OUTCOME_OK"}
    results = [event.tool for event in await server.events(run_id) if event.tool.result.text]
    assert any("outcome unknown" in tool.result.text and tool.is_error for tool in results)
    # The model was told, and decides what comes next.
    assert "outcome unknown" in json.dumps(model.requests[-1].messages)


async def test_a_call_killed_in_the_middle_of_its_work_is_not_run_again(
    make_server: MakeServer, model: ModelServer
) -> None:
    server = make_server()
    await server.start()
    model.answer(calls_answer(("ledger", {"token": "a", "then": "hang"}), ("again", {"token": "b", "then": "hang"})))
    run_id = (await server.accept("go", session_key="s")).run_id
    await server.notice("effect", "a")
    await server.notice("effect", "b")
    await server.restart()
    await server.notice("effect", "b")
    assert _effects(server).count("a") == 1
    await server.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))
    assert await results_of(server, "s") == {"a": "TOOL_OUTCOME_UNKNOWN", "b": "TOOL_OUTCOME_ABORTED"}


async def test_a_finished_call_keeps_its_result_while_its_neighbour_is_unknown(
    make_server: MakeServer, model: ModelServer
) -> None:
    """The batch had not settled: one result was stored, in the row only, the other call still ran."""
    server = make_server(is_shadowed=True, failpoint=Failpoint("after", "call finished"))
    await server.start()
    model.answer(calls_answer(("ledger", {"token": "slow", "then": "hang"}), ("ledger", {"token": "quick"})))
    run_id = (await server.accept("go", session_key="s")).run_id
    await server.exited()
    server.lose_power()
    assert server.extras is not None
    server.extras = replace(server.extras, failpoint=None)
    await server.start()
    assert (await server.wait(run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    assert await results_of(server, "s") == {"slow": "TOOL_OUTCOME_UNKNOWN", "quick": "TOOL_OUTCOME_OK"}
    assert _effects(server).count("quick") == 1
    results = [message for message in model.requests[-1].messages if message["role"] == "tool"]
    assert "outcome unknown" in results[0]["content"]
    assert results[1]["content"] == "wrote quick"


async def test_calls_get_their_results_when_a_recovered_run_is_aborted_before_it_got_to_them(
    make_server: MakeServer, model: ModelServer
) -> None:
    server = make_server()
    await server.start()
    model.answer(calls_answer(("ledger", {"token": "a", "then": "hang"}), text="What I said."))
    accepted = await server.accept("go", session_key="s")
    await server.notice("effect", "a")
    await server.kill()
    # Another process holds the session, so that the recovered run waits before it looks at anything.
    locks = SessionLocks(server.home / "locks", clock=SystemClock(), acquire_timeout_s=60)
    held = await locks.acquire("default", accepted.session_key, run_id="somebody else's")
    await server.start()
    await server.event(accepted.run_id, is_recovery)
    receipt = await server.agent.Abort(agent_pb2.AbortRequest(run_id=accepted.run_id))
    await locks.release(held)
    locks.close()

    assert list(receipt.aborted_run_ids) == [accepted.run_id]
    waited = await server.wait(accepted.run_id)
    assert [payload.text for payload in waited.payloads] == ["What I said."]
    assert await results_of(server, accepted.session_key) == {"a": "TOOL_OUTCOME_UNKNOWN"}
