"""The first complete path: accept, run, stream, end."""

from pathlib import Path

from tests.fakes.model_answers import calls_answer, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.service import RunningService, running_service

from laneway.v1 import agent_pb2, event_pb2, run_pb2


async def test_a_message_becomes_an_answer_on_which_wait_and_log_agree(
    service: RunningService, model: ModelServer
) -> None:
    model.answer(text_answer("Hel", "lo", " there"))
    accepted = await service.accept("hi", session_key="chat")
    waited = await service.wait(accepted.run_id)
    events = await service.events(accepted.run_id)

    assert waited.status == agent_pb2.WAIT_STATUS_OK
    assert waited.state == run_pb2.RUN_STATE_SUCCEEDED
    assert [payload.text for payload in waited.payloads] == ["Hello there"]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert "".join(event.assistant.delta for event in events) == "Hello there"
    ends = [event.lifecycle for event in events if event.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_END]
    assert len(ends) == 1
    assert events[-1].lifecycle.phase == event_pb2.LIFECYCLE_PHASE_END
    assert ends[0].ended_at == waited.ended_at
    assert accepted.session_key == "agent:main:chat"


async def test_a_tool_call_runs_and_its_result_goes_back_to_the_model(tmp_path: Path, model: ModelServer) -> None:
    tool = RecordingTool("rec")
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        model.answer(calls_answer(("rec", {"k": 1}), text="Looking. "))
        model.answer(text_answer("found"))
        waited = await service.finish("look")
    assert waited.status == agent_pb2.WAIT_STATUS_OK
    assert [call.arguments for call in tool.calls] == [{"k": 1}]
    roles = [message["role"] for message in model.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool"]
