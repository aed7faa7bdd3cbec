"""Refusals of runs that start runs (D-8)."""

from pathlib import Path

import grpc
from tests.fakes.model_answers import calls_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import get_run
from tests.service.refusals import all_that_is_stored, refused, refused_and_unchanged

from laneway.v1 import agent_pb2


async def test_a_child_may_not_use_the_session_of_an_ancestor(tmp_path: Path, model: ModelServer) -> None:
    tool = RecordingTool("rec", hold=True)
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        model.answer(calls_answer(("rec", {})), calls_answer(("rec", {})))
        parent = await service.accept(session_key="parent")
        first = await tool.asked.get()
        child = await service.accept(session_key="child", parent_run_id=parent.run_id)
        second = await tool.asked.get()
        for key, run in (("child", child), ("parent", parent)):
            before = await all_that_is_stored(service)
            refusal = await refused(service.accept(session_key=key, parent_run_id=child.run_id, idempotency_key="k"))
            assert (refusal.status, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NESTED_IN_SESSION")
            assert refusal.metadata == {"run_id": run.run_id}
            assert await all_that_is_stored(service) == before
        grandchild = await service.accept(session_key="third", parent_run_id=child.run_id, idempotency_key="k")
        assert (await service.wait(grandchild.run_id)).status == agent_pb2.WAIT_STATUS_OK
        assert (await get_run(service, grandchild.run_id)).parent_run_id == child.run_id
        for call in (first, second):
            call.answer.set_result(DONE)
        assert (await service.wait(parent.run_id)).status == agent_pb2.WAIT_STATUS_OK


async def test_runs_nest_only_as_deep_as_the_settings_allow(tmp_path: Path, model: ModelServer) -> None:
    tool = RecordingTool("rec", hold=True)
    toml = "[limits]\nmax_depth = 2\n"
    async with running_service(tmp_path / "home", model=model, tools=[tool], toml=toml) as service:
        model.answer(*(calls_answer(("rec", {})) for _ in range(3)))
        calls, parent_run_id = [], ""
        for depth in range(3):
            parent_run_id = (await service.accept(session_key=f"depth {depth}", parent_run_id=parent_run_id)).run_id
            calls.append(await tool.asked.get())
        refusal = await refused(service.accept(session_key="too deep", parent_run_id=parent_run_id))
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID")
        assert refusal.metadata == {"field": "parent_run_id"}
        for call in calls:
            call.answer.set_result(DONE)
        await service.wait(parent_run_id)


async def test_a_parent_that_has_ended_is_not_found(service: RunningService) -> None:
    parent = await service.accept(session_key="parent")
    await service.wait(parent.run_id)
    refusal = await refused_and_unchanged(service, {"parent_run_id": parent.run_id})
    assert (refusal.status, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND")
    assert refusal.metadata == {"field": "parent_run_id", "run_id": parent.run_id}
