"""No started tool call runs twice, and none has an effect before it is in the transcript (D-2)."""

from pathlib import Path

import pytest
from tests.fakes.commit_gates import HoldingGate
from tests.fakes.model_server import ModelServer, calls_answer, text_answer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.service import running_service
from tests.processes.failpoints import kinds_of

from laneway.v1 import agent_pb2
from lanewayd.app import Seams

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
