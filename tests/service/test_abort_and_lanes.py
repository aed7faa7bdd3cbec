"""Abort and its receipt (D-20), deadlines (D-14), lanes and priorities (D-8), repeated keys (D-1)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from tests.fakes.commit_gates import HoldingGate
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import calls_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, AskedCall, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import Expected, check_outcome, get_run, read_ended, runs_of
from tests.service.refusals import refused

from laneway.v1 import admin_pb2, agent_pb2, event_pb2, run_pb2, session_pb2
from lanewayd.app import Seams
from lanewayd.store.interface import AcceptRun
from lanewayd.tools.interface import ToolContext, ToolResult

SUCCEEDED, CANCELLED = run_pb2.RUN_STATE_SUCCEEDED, run_pb2.RUN_STATE_CANCELLED
LANES = "[agents.defaults]\nmax_concurrent = 1\n[lanes.wide]\nmax_concurrent = 2\n"


@dataclass
class Stage:
    """A service with one place in `main`, two in `wide`, and a tool that waits for the test."""

    service: RunningService
    model: ModelServer
    tool: RecordingTool
    clock: FakeClock
    calls: dict[str, AskedCall] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    accepted: int = 0

    async def accept(self, session_key: str, **fields: Any) -> run_pb2.AgentResponse:
        """A message whose run will stand in a tool call."""
        self.accepted += 1
        name = f"model-{self.accepted}"
        self.model.answer(calls_answer(("rec", {}), text="Working. "), model=name)
        return await self.service.accept("work", session_key=session_key, model=f"mock/{name}", **fields)

    async def next_at_work(self) -> str:
        """The next run that has come to its tool call."""
        call = await self.tool.asked.get()
        self.calls[call.context.run_id] = call
        self.started.append(call.context.run_id)
        return call.context.run_id

    def let_go(self, run_id: str) -> None:
        """The run's tool call returns."""
        self.calls[run_id].answer.set_result(DONE)

    async def abort(self, **fields: Any) -> agent_pb2.AbortResponse:
        """`Abort`."""
        return await self.service.agent.Abort(agent_pb2.AbortRequest(**fields))


@pytest.fixture
async def stage(tmp_path: Path, model: ModelServer) -> AsyncGenerator[Stage, None]:
    clock, tool = FakeClock(), RecordingTool("rec", hold=True)
    async with running_service(
        tmp_path / "home", model=model, tools=[tool], toml=LANES, seams=Seams(clock=clock)
    ) as service:
        yield Stage(service, model, tool, clock)


# --- abort ---


async def test_a_session_is_aborted_without_its_queue_unless_asked(stage: Stage) -> None:
    first = await stage.accept("s")
    assert await stage.next_at_work() == first.run_id
    second = await stage.accept("s")
    assert await stage.abort(session_key="s") == agent_pb2.AbortResponse(aborted_run_ids=[first.run_id])
    assert await stage.next_at_work() == second.run_id
    third, fourth = await stage.accept("s"), await stage.accept("s")
    receipt = await stage.abort(session_key=" S ", clear_queued=True, reason="enough")
    assert receipt == agent_pb2.AbortResponse(
        aborted_run_ids=[second.run_id], cancelled_run_ids=[third.run_id, fourth.run_id]
    )
    for run_id in (first.run_id, second.run_id):
        await check_outcome(stage.service, run_id, Expected(CANCELLED, "rpc", payloads=("Working. ",)))
    for run_id in (third.run_id, fourth.run_id):
        reading = await check_outcome(stage.service, run_id, Expected(CANCELLED, "rpc", was_started=False))
        phases = [event.queue.phase for event in reading.of_kind("queue")]
        assert phases == [event_pb2.QUEUE_PHASE_QUEUED, event_pb2.QUEUE_PHASE_CANCELLED]
    assert len(stage.tool.cancelled) == 2
    assert len(stage.model.requests) == 2


async def test_when_abort_has_answered_the_run_is_over(stage: Stage) -> None:
    run = await stage.accept("s")
    await stage.next_at_work()
    await stage.abort(run_id=run.run_id)
    waited = await stage.service.wait(run.run_id, 0)
    assert waited.state == CANCELLED
    log = await stage.service.events(run.run_id)
    results = [event.tool for event in log if event.tool.phase == event_pb2.TOOL_PHASE_RESULT]
    assert [result.outcome for result in results] == [event_pb2.TOOL_OUTCOME_ABORTED]
    entries = await _entries(stage.service, "s")
    following = await stage.service.finish("next", session_key="s")
    assert following.status == agent_pb2.WAIT_STATUS_OK
    assert await stage.service.events(run.run_id) == log
    assert [entry for entry in await _entries(stage.service, "s") if entry.run_id == run.run_id] == entries


async def test_an_abort_of_an_ended_run_is_an_empty_receipt_and_one_of_an_unknown_run_is_refused(stage: Stage) -> None:
    run = await stage.service.accept(session_key="s")
    await stage.service.wait(run.run_id)
    before = await get_run(stage.service, run.run_id)
    assert await stage.abort(run_id=run.run_id) == agent_pb2.AbortResponse()
    assert await stage.abort(session_key="s", clear_queued=True) == agent_pb2.AbortResponse()
    assert await get_run(stage.service, run.run_id) == before
    assert (await refused(stage.abort(run_id="run_none"))).reason == "RUN_NOT_FOUND"
    assert (await refused(stage.abort(session_key="none"))).reason == "SESSION_NOT_FOUND"
    assert (await refused(stage.abort())).reason == "FIELD_INVALID"
    refusal = await refused(stage.abort(run_id=run.run_id, reason="r" * 513))
    assert (refusal.reason, refusal.metadata) == ("FIELD_INVALID", {"field": "reason"})


async def test_two_aborts_at_once_both_get_a_receipt_and_there_is_one_end(stage: Stage) -> None:
    run = await stage.accept("s")
    await stage.next_at_work()
    receipts = await asyncio.gather(*(stage.abort(run_id=run.run_id) for _ in range(5)))
    assert all(receipt.aborted_run_ids in ([run.run_id], []) for receipt in receipts)
    assert any(receipt.aborted_run_ids for receipt in receipts)
    await check_outcome(stage.service, run.run_id, Expected(CANCELLED, "rpc", payloads=("Working. ",)))


class StubbornTool(RecordingTool):
    """Does not let go when it is cancelled, until the test says so."""

    def __init__(self) -> None:
        super().__init__("stubborn")
        self.let_go = asyncio.Event()
        self.is_asked_to_end = asyncio.Event()

    @asynccontextmanager
    async def letting_go(self) -> AsyncGenerator[None, None]:
        """Lets go at the end, whatever the test came to."""
        try:
            yield
        finally:
            self.let_go.set()

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        self.asked.put_nowait(AskedCall(arguments, context, asyncio.get_running_loop().create_future()))
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.is_asked_to_end.set()
            await self.let_go.wait()
            raise
        return DONE


async def test_an_abort_answers_after_five_seconds_and_names_what_still_unwinds(
    tmp_path: Path, model: ModelServer
) -> None:
    clock, tool = FakeClock(), StubbornTool()
    async with (
        running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(clock=clock)) as service,
        tool.letting_go(),
    ):
        model.answer(calls_answer(("stubborn", {})))
        run = await service.accept(session_key="s")
        await tool.asked.get()
        aborting = service.agent.Abort(agent_pb2.AbortRequest(run_id=run.run_id))
        await tool.is_asked_to_end.wait()
        # The limit of the unwinding and that of the answer.
        await clock.wait_for_timers(3)
        await clock.advance(5)
        assert await aborting == agent_pb2.AbortResponse(pending_run_ids=[run.run_id])
        assert (await service.wait(run.run_id, 0)).state == run_pb2.RUN_STATE_RUNNING
        waiting = asyncio.create_task(service.wait(run.run_id, 1000))
        await clock.advance(25)
        waited = await waiting
        assert (waited.state, waited.stop_reason) == (CANCELLED, "rpc")
        # Its session stays taken until the task is gone.
        queued = await service.accept(session_key="s")
        other = await service.accept(session_key="other")
        assert (await service.wait(other.run_id)).status == agent_pb2.WAIT_STATUS_OK
        assert (await service.wait(queued.run_id, 0)).state == run_pb2.RUN_STATE_QUEUED
        tool.let_go.set()
        assert (await service.wait(queued.run_id)).status == agent_pb2.WAIT_STATUS_OK


# --- deadlines ---


async def test_only_time_at_work_counts_for_the_deadline(stage: Stage) -> None:
    first = await stage.accept("s")
    await stage.next_at_work()
    second = await stage.accept("s", timeout=Duration(seconds=10))
    await stage.clock.advance(60)
    stage.let_go(first.run_id)
    assert await stage.next_at_work() == second.run_id
    await stage.clock.advance(9)
    assert (await stage.service.wait(second.run_id, 0)).state == run_pb2.RUN_STATE_RUNNING
    await stage.clock.advance(1)
    expected = Expected(run_pb2.RUN_STATE_TIMED_OUT, "deadline", "RUN_DEADLINE", ("Working. ",))
    reading = await check_outcome(stage.service, second.run_id, expected)
    assert "10 s" in reading.run.error.message
    assert not reading.run.error.retryable


async def test_a_timeout_of_zero_is_no_deadline_at_all(tmp_path: Path, model: ModelServer) -> None:
    clock, tool = FakeClock(), RecordingTool("rec", hold=True)
    # Without the look-out for silent runs, which would end the tool.
    toml = "[agents.defaults]\ntimeout_seconds = 100\n[diagnostics]\nenabled = false\n"
    async with running_service(
        tmp_path / "home", model=model, tools=[tool], toml=toml, seams=Seams(clock=clock)
    ) as service:
        model.answer(calls_answer(("rec", {})), calls_answer(("rec", {})))
        unlimited = await service.accept(session_key="a", timeout=Duration())
        call = await tool.asked.get()
        limited = await service.accept(session_key="b")
        await tool.asked.get()
        await clock.advance(100)
        assert (await service.wait(limited.run_id)).timeout_kind == agent_pb2.TIMEOUT_KIND_RUN_DEADLINE
        await clock.advance(10_000_000)
        assert (await service.wait(unlimited.run_id, 0)).state == run_pb2.RUN_STATE_RUNNING
        call.answer.set_result(DONE)
        assert (await service.wait(unlimited.run_id)).status == agent_pb2.WAIT_STATUS_OK


async def test_an_answer_that_is_there_before_the_deadline_wins(stage: Stage) -> None:
    run = await stage.service.accept(session_key="s", timeout=Duration(seconds=5))
    await stage.service.wait(run.run_id)
    await stage.clock.advance(100)
    await check_outcome(stage.service, run.run_id, Expected(SUCCEEDED, "stop", payloads=("ok",)))
    assert await stage.abort(run_id=run.run_id) == agent_pb2.AbortResponse()


# --- lanes ---


async def test_a_lane_starts_as_many_runs_as_it_is_wide_and_others_do_not_wait_for_it(stage: Stage) -> None:
    in_wide = [await stage.accept(f"w{number}", lane="wide") for number in range(3)]
    assert {await stage.next_at_work(), await stage.next_at_work()} == {run.run_id for run in in_wide[:2]}
    in_main = await stage.accept("m")
    assert await stage.next_at_work() == in_main.run_id
    status = await stage.service.admin.GetStatus(admin_pb2.GetStatusRequest())
    lanes = {lane.name: (lane.width, lane.active, lane.queued) for lane in status.lanes}
    assert (lanes["wide"], lanes["main"], lanes["cron"]) == ((2, 2, 1), (1, 1, 0), (8, 0, 0))
    stage.let_go(in_wide[0].run_id)
    assert await stage.next_at_work() == in_wide[2].run_id
    unnamed = await stage.accept("u", lane="of no settings")
    assert await stage.next_at_work() == unnamed.run_id


async def test_priority_orders_sessions_and_never_the_messages_of_one(stage: Stage) -> None:
    first = await stage.accept("running")
    await stage.next_at_work()
    low = await stage.accept("low", priority=agent_pb2.PRIORITY_BACKGROUND)
    normal = await stage.accept("normal", priority=agent_pb2.PRIORITY_NORMAL)
    default = await stage.accept("default")
    behind = await stage.accept("low", priority=agent_pb2.PRIORITY_FOREGROUND)
    order = [default.run_id, normal.run_id, low.run_id, behind.run_id]
    previous = first.run_id
    for run_id in order:
        stage.let_go(previous)
        assert await stage.next_at_work() == run_id
        previous = run_id
    stage.let_go(previous)
    await stage.service.wait(previous)


async def test_children_of_a_run_at_work_have_lanes_of_their_own(stage: Stage) -> None:
    parent = await stage.accept("parent")
    await stage.next_at_work()
    child = await stage.accept("child", parent_run_id=parent.run_id)
    assert await stage.next_at_work() == child.run_id
    status = await stage.service.admin.GetStatus(admin_pb2.GetStatusRequest())
    lanes = {lane.name: (lane.width, lane.active) for lane in status.lanes}
    assert lanes["nested.1"] == (8, 1)
    in_main = await stage.accept("grandchild", parent_run_id=child.run_id, lane="main")
    stage.let_go(parent.run_id)
    assert await stage.next_at_work() == in_main.run_id
    for run in (child, in_main):
        stage.let_go(run.run_id)
        await stage.service.wait(run.run_id)


async def test_the_place_in_the_queue_is_the_present_one(stage: Stage) -> None:
    first = await stage.accept("s")
    await stage.next_at_work()
    queued = [await stage.accept("s") for _ in range(3)]
    other = await stage.accept("t")
    assert (first.disposition, first.queue_position) == (run_pb2.DISPOSITION_STARTED, 0)
    assert [run.queue_position for run in queued] == [0, 1, 2]
    assert (other.disposition, other.queue_position) == (run_pb2.DISPOSITION_STARTED, 0)

    async def places() -> list[int]:
        listed = await runs_of(stage.service, "s")
        waiting = [run for run in reversed(listed) if run.state == run_pb2.RUN_STATE_QUEUED]
        for run in waiting:
            assert await get_run(stage.service, run.run_id) == run
        everything = await stage.service.agent.ListRuns(agent_pb2.ListRunsRequest(page_size=500))
        assert [run for run in everything.runs if run.session_key == "agent:main:s"] == listed
        return [run.queue_position for run in waiting]

    assert await places() == [0, 1, 2]
    await stage.abort(run_id=queued[1].run_id)
    assert await places() == [0, 1]
    await stage.abort(run_id=first.run_id)
    assert await stage.next_at_work() in (queued[0].run_id, other.run_id)
    if stage.started[-1] == other.run_id:
        stage.let_go(other.run_id)
        await stage.next_at_work()
    assert await places() == [0]


# --- keys ---


async def test_a_key_sent_over_two_channels_makes_one_run_whichever_is_first(
    tmp_path: Path, model: ModelServer
) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AcceptRun))
    async with running_service(tmp_path / "home", model=model, seams=Seams(commit_gate=gate)) as service:
        second_channel = RunningService(service.service, service.home, service.target)
        first = asyncio.create_task(service.accept(session_key="s", idempotency_key="k"))
        await gate.reached()
        second = asyncio.create_task(second_channel.accept(session_key="s", idempotency_key="k"))
        other = asyncio.create_task(second_channel.accept("another text", session_key="s", idempotency_key="k"))
        assert not (await asyncio.wait({first, second, other}, timeout=0))[0]
        gate.release()
        answers = [await first, await second]
        assert (await refused(other)).reason == "IDEMPOTENCY_KEY_REUSED"
        assert sorted(answer.duplicate for answer in answers) == [False, True]
        for answer in answers:
            answer.duplicate = False
        assert answers[0] == answers[1]
        await service.wait(answers[0].run_id)
        assert len(await runs_of(service, "s")) == 1
        again = await second_channel.accept(session_key="s", idempotency_key="k")
        assert again.duplicate
        again.duplicate = False
        assert again == answers[0]
        await second_channel.close_channel()
    assert len(model.requests) == 1


async def test_a_key_is_free_again_after_a_day(stage: Stage) -> None:
    first = await stage.service.accept(session_key="s", idempotency_key="k")
    await stage.service.wait(first.run_id)
    await stage.clock.advance(24 * 3600 - 1)
    assert (await stage.service.accept(session_key="s", idempotency_key="k")).duplicate
    await stage.clock.advance(1)
    fresh = await stage.service.accept("another text", session_key="s", idempotency_key="k")
    assert not fresh.duplicate
    assert fresh.run_id != first.run_id
    await stage.service.wait(fresh.run_id)


async def test_a_caller_that_goes_away_before_the_answer_changes_nothing(tmp_path: Path, model: ModelServer) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AcceptRun))
    async with running_service(tmp_path / "home", model=model, seams=Seams(commit_gate=gate)) as service:
        call = service.agent.Agent(
            agent_pb2.AgentRequest(message="hi", model="mock/any", session_key="s", idempotency_key="k")
        )
        await gate.reached()
        call.cancel()
        gate.release()
        again = await service.accept("hi", session_key="s", idempotency_key="k")
        assert again.duplicate
        reading = await read_ended(service, again.run_id)
        assert reading.run.state == SUCCEEDED
        assert [run.run_id for run in await runs_of(service, "s")] == [again.run_id]


async def _entries(service: RunningService, session_key: str) -> list[session_pb2.Entry]:
    page = await service.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key=session_key))
    return list(page.entries)
