"""Two tenants whose sessions have the same key and work: what one does leaves the other alone."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.fakes.model_answers import calls_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import running_service
from tests.service.busy_session import FINISHED, INTERRUPTED, held_tool
from tests.service.tenants import Tenant

from laneway.v1 import agent_pb2, run_pb2

STOPPED_BY_WORD = (run_pb2.RUN_STATE_CANCELLED, "stop_word")
ABORTED = (run_pb2.RUN_STATE_CANCELLED, "rpc")


async def _end_of(tenant: Tenant, run_id: str) -> tuple[int, str]:
    waited = await tenant.wait(run_id)
    return waited.state, waited.stop_reason


async def _at_work(tenant: Tenant, model: ModelServer, tool: RecordingTool) -> list[str]:
    """A run that waits for its tool, and one behind it."""
    model.answer(calls_answer(("rec", {}), text="Let me see. "))
    active = await tenant.accept("first", session_key="s")
    await tool.asked.get()
    queued = await tenant.accept("second", session_key="s", queue_mode=agent_pb2.QUEUE_MODE_FOLLOWUP)
    return [active.run_id, queued.run_id]


def _release(tool: RecordingTool) -> None:
    for call in tool.calls:
        if not call.answer.done():
            call.answer.set_result(DONE)


@pytest.mark.parametrize(
    ("act", "ends"),
    [
        (lambda mine: mine.abort_session("s"), [ABORTED, ABORTED]),
        (lambda mine: mine.accept("/stop", session_key="s"), [STOPPED_BY_WORD, STOPPED_BY_WORD]),
        (
            lambda mine: mine.accept("now", session_key="s", queue_mode=agent_pb2.QUEUE_MODE_INTERRUPT),
            [INTERRUPTED, FINISHED],
        ),
    ],
    ids=["abort of the session", "/stop", "an interrupting message"],
)
async def test_who_stops_its_session_does_not_stop_anothers_of_the_same_key(
    tmp_path: Path,
    model: ModelServer,
    act: Callable[[Tenant], Awaitable[object]],
    ends: list[tuple[int, str]],
) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        mine, theirs = Tenant(service, "one"), Tenant(service, "two")
        their_runs = await _at_work(theirs, model, tool)
        my_runs = await _at_work(mine, model, tool)
        await act(mine)
        assert [await _end_of(mine, run_id) for run_id in my_runs] == ends
        listed = await service.agent.ListRuns(agent_pb2.ListRunsRequest(session_key="s"), metadata=theirs.metadata)
        states = {run.run_id: run.state for run in listed.runs}
        assert [states[run_id] for run_id in their_runs] == [run_pb2.RUN_STATE_RUNNING, run_pb2.RUN_STATE_QUEUED]
        _release(tool)
        assert [await _end_of(theirs, run_id) for run_id in their_runs] == [FINISHED, FINISHED]


async def test_a_steering_message_goes_into_the_run_of_its_own_tenant(tmp_path: Path, model: ModelServer) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        mine, theirs = Tenant(service, "one"), Tenant(service, "two")
        their_runs = await _at_work(theirs, model, tool)
        my_runs = await _at_work(mine, model, tool)
        steered = await mine.accept("my secret", session_key="s", queue_mode=agent_pb2.QUEUE_MODE_STEER)
        _release(tool)
        assert [await _end_of(mine, run_id) for run_id in (*my_runs, steered.run_id)] == [FINISHED] * 3
        assert [await _end_of(theirs, run_id) for run_id in their_runs] == [FINISHED, FINISHED]
        merged = await service.agent.GetRun(agent_pb2.GetRunRequest(run_id=steered.run_id), metadata=mine.metadata)
        assert merged.merged_into_run_id == my_runs[0]
        page = await service.agent.ListRuns(agent_pb2.ListRunsRequest(), metadata=theirs.metadata)
        assert {run.run_id for run in page.runs} == set(their_runs)


async def test_a_tenant_whose_session_rests_stops_nothing_of_another(tmp_path: Path, model: ModelServer) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        mine, theirs = Tenant(service, "one"), Tenant(service, "two")
        done = await mine.accept("mine", session_key="s")
        assert await _end_of(mine, done.run_id) == FINISHED
        their_runs = await _at_work(theirs, model, tool)
        told = await mine.accept("/stop", session_key="s")
        assert told.disposition == run_pb2.DISPOSITION_COMPLETED
        receipt = await mine.abort_session("s")
        assert not [*receipt.aborted_run_ids, *receipt.cancelled_run_ids]
        _release(tool)
        assert [await _end_of(theirs, run_id) for run_id in their_runs] == [FINISHED, FINISHED]
