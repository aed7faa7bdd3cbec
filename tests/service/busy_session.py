"""A session that is at work, for tests of what further messages do to it."""

from tests.fakes.model_answers import calls_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.service import RunningService

from laneway.v1 import agent_pb2, run_pb2, session_pb2

FOLLOWUP = agent_pb2.QUEUE_MODE_FOLLOWUP
QUEUED, COLLECTED = run_pb2.DISPOSITION_QUEUED, run_pb2.DISPOSITION_COLLECTED
INTERRUPTED = (run_pb2.RUN_STATE_CANCELLED, "interrupt")
FINISHED = (run_pb2.RUN_STATE_SUCCEEDED, "stop")


def held_tool() -> RecordingTool:
    return RecordingTool("rec", hold=True)


async def at_work(service: RunningService, model: ModelServer, tool: RecordingTool, **fields: object) -> str:
    """A run of session s that waits for its tool."""
    model.answer(calls_answer(("rec", {}), text="Let me see. "))
    run = await service.accept("first", session_key="s", **fields)
    await tool.asked.get()
    return run.run_id


async def end_of(service: RunningService, run_id: str) -> tuple[int, str]:
    waited = await service.wait(run_id)
    return waited.state, waited.stop_reason


async def said_in(service: RunningService, session_key: str) -> list[str]:
    page = await service.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key=session_key, page_size=100))
    return [entry.user.content[0].text for entry in page.entries if entry.HasField("user")]
