"""No started tool call runs twice, and none has an effect before it is in the transcript (D-2)."""

from pathlib import Path

import pytest
from tests.fakes.commit_gates import HoldingGate
from tests.fakes.model_server import ModelServer, calls_answer, text_answer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.service import running_service
from tests.processes.conftest import MakeServer
from tests.processes.failpoints import kinds_of
from tests.processes.reading import is_recovery, results_of

from laneway.v1 import agent_pb2
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
