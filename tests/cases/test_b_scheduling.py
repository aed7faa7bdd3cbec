"""Cases of group b: lanes, timeouts, overload. Keys and waits: test_b_waiting.py. Later capabilities: pending.md."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from filelock import FileLock
from tests.cases.answers import held, never, said
from tests.cases.observing import check_conversations, check_idle, entries_of, lock_files, observe, unwound
from tests.fakes.commit_gates import HoldingGate
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import calls_answer, failure, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, refusal_of, running_service

from laneway.v1 import agent_pb2, event_pb2, run_pb2
from lanewayd.app import Seams
from lanewayd.records import ToolCallState
from lanewayd.store.interface import AppendToRun
from lanewayd.tools.interface import ToolContext, ToolResult


async def phase_seen(service: RunningService, run_id: str, phase: event_pb2.LifecyclePhase) -> event_pb2.Event:
    """The first event of a lifecycle phase, as soon as it can be read."""
    call = service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0))
    try:
        async for event in call:
            if event.lifecycle.phase == phase:
                return event
    finally:
        call.cancel()
    raise AssertionError("the run ended without it")


async def test_b_029_what_waits_behind_a_run_that_times_out_goes_on_by_itself(
    tmp_path: Path, model: ModelServer
) -> None:
    clock = FakeClock()
    toml = "\n[agents.defaults]\ntimeout_seconds = 1\n"
    async with running_service(tmp_path / "home", model=model, toml=toml, seams=Seams(clock=clock)) as service:
        model.answer(never())
        first = await service.accept("m1", session_key="s")
        await model.received(1)
        await clock.advance(0.3)
        second = await service.accept("m2", session_key="s", queue_mode=agent_pb2.QUEUE_MODE_FOLLOWUP)
        assert second.disposition == run_pb2.DISPOSITION_QUEUED
        await clock.advance(0.7)
        ended = await observe(service, first.run_id, wait_s=10)
        third = await service.accept("m3", session_key="s")
        others = [await observe(service, run.run_id, wait_s=10) for run in (second, third)]

        assert ended.run.state == run_pb2.RUN_STATE_TIMED_OUT
        assert ended.terminal.phase == event_pb2.LIFECYCLE_PHASE_ERROR
        assert ended.run.error.reason == "RUN_DEADLINE"
        assert ended.waited.timeout_kind == agent_pb2.TIMEOUT_KIND_RUN_DEADLINE
        for other in others:
            assert other.run.state == run_pb2.RUN_STATE_SUCCEEDED
            assert other.payloads == ["ok"]
            waited_ms = other.run.started_at.ToMilliseconds() - ended.run.ended_at.ToMilliseconds()
            assert 0 <= waited_ms < 1000
        assert said(model) == ["m1", "m2", "m3"]
        entries = await entries_of(service, "s")
        assert [entry.user.content[0].text for entry in entries if entry.HasField("user")] == ["m1", "m2", "m3"]
        await check_idle(service)
        check_conversations(model)


class Phase:
    """A run that stands in one phase, for B-030. `go` brings it there; `let_go` is called when the run is stopped."""

    def __init__(self, service: RunningService, model: ModelServer, tool: RecordingTool, clock: FakeClock) -> None:
        self.service, self.model, self.tool, self.clock = service, model, tool, clock
        self.gate: HoldingGate | None = None
        self.foreign_lock: FileLock | None = None

    async def go(self, phase: str, budget_s: int) -> str:
        """A run of session `s` with this budget, standing in `phase`."""
        if phase == "model request":
            self.model.answer(never())
        elif phase in ("tool", "transcript write"):
            self.model.answer(calls_answer(("held", {})))
        elif phase == "retry back-off":
            self.model.answer(failure(529, {"error": {"message": "overloaded"}}))
        else:
            path = self.service.service.parts.locks.path_of("default", "agent:main:s")
            self.foreign_lock = FileLock(path, is_singleton=False)
            self.foreign_lock.acquire(timeout=0)
        run_id = (await self.service.accept("m1", session_key="s", timeout={"seconds": budget_s})).run_id
        if phase == "model request":
            await self.model.received(1)
        elif phase == "tool":
            await self.tool.asked.get()
        elif phase == "transcript write":
            assert self.gate is not None
            await self.gate.reached()
        elif phase == "retry back-off":
            await phase_seen(self.service, run_id, event_pb2.LIFECYCLE_PHASE_RETRY)
        else:
            await phase_seen(self.service, run_id, event_pb2.LIFECYCLE_PHASE_START)
            await self.clock.wait_for_sleepers(1)  # the one for the lock
        return run_id

    def let_go(self) -> None:
        """A store that is held stores no abort either: it works again."""
        if self.gate is not None:
            self.gate.release()


PHASES = ("session lock", "model request", "tool", "retry back-off", "transcript write")


@pytest.mark.parametrize("cause", ["deadline", "abort"])
@pytest.mark.parametrize("phase", PHASES)
async def test_b_030_a_stop_ends_the_run_in_every_phase(
    tmp_path: Path, model: ModelServer, phase: str, cause: str
) -> None:
    """The phase of compaction comes with it. Time stands still at the stop, so the run ends within 0 s of it."""
    clock = FakeClock()
    tool = RecordingTool("held", hold=True)
    gate = HoldingGate(_launches)
    seams = Seams(clock=clock, commit_gate=gate if phase == "transcript write" else None)
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=seams) as service:
        standing = Phase(service, model, tool, clock)
        standing.gate = gate if phase == "transcript write" else None
        run_id = await standing.go(phase, 2)
        stopped_at = clock.now()
        if cause == "deadline":
            await clock.advance(2)
            stopped_at += timedelta(seconds=2)
            standing.let_go()
        else:
            abort = asyncio.ensure_future(service.agent.Abort(agent_pb2.AbortRequest(run_id=run_id)))
            standing.let_go()
            assert list((await abort).aborted_run_ids) == [run_id]
        observed = await observe(service, run_id)
        expected = {"deadline": run_pb2.RUN_STATE_TIMED_OUT, "abort": run_pb2.RUN_STATE_CANCELLED}[cause]
        assert observed.run.state == expected
        assert observed.run.stop_reason == {"deadline": "deadline", "abort": "rpc"}[cause]
        ended_ms = observed.run.ended_at.ToMilliseconds() - round(stopped_at.timestamp() * 1000)
        assert 0 <= ended_ms <= 1000
        await unwound(service)
        if standing.foreign_lock is None:
            assert lock_files(service) == []
        else:
            standing.foreign_lock.release()
        again = await service.accept("m2", session_key="s")
        next_run = await observe(service, again.run_id)
        assert next_run.run.state == run_pb2.RUN_STATE_SUCCEEDED
        assert next_run.payloads == ["ok"]
        assert tool.ended == tool.cancelled
        check_conversations(model)
        await check_idle(service)


def _launches(command: object) -> bool:
    return isinstance(command, AppendToRun) and any(
        row.state is ToolCallState.LAUNCHED for change in command.changes for row in change.tool_calls
    )


class NestingTool:
    """A tool that starts a run and waits for it, as a client inside a tool does."""

    def __init__(self, session_key: str) -> None:
        self._recording = RecordingTool("nest")
        self._session_key = session_key
        self.service: RunningService | None = None
        self.spec = self._recording.spec
        self.is_idempotent = self.is_sequential = False

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        assert self.service is not None
        try:
            child = await self.service.accept(
                "child", session_key=self._session_key, parent_run_id=context.run_id, model="mock/child"
            )
        except grpc.aio.AioRpcError as error:
            return ToolResult(refusal_of(error).reason, is_error=True)
        return ToolResult((await self.service.wait(child.run_id, 5)).payloads[0].text)


@pytest.mark.parametrize(("child_key", "expected"), [("s2", "from the child"), ("s", "NESTED_IN_SESSION")])
async def test_b_035_a_child_of_a_run_needs_none_of_its_places(
    tmp_path: Path, model: ModelServer, child_key: str, expected: str
) -> None:
    """The clock stands still, so that no wait can have expired."""
    tool = NestingTool(child_key)
    toml = "\n[agents.defaults]\nmax_concurrent = 1\n"
    seams = Seams(clock=FakeClock())
    async with running_service(tmp_path / "home", model=model, toml=toml, tools=[tool], seams=seams) as service:
        tool.service = service
        model.answer(calls_answer(("nest", {})))
        model.answer(text_answer("from the child"), model="child")
        parent = await observe(service, (await service.accept("go", session_key="s")).run_id)
        assert parent.run.state == run_pb2.RUN_STATE_SUCCEEDED
        assert [result.content[0].text for result in parent.tool_results] == [expected]
        runs = (await service.agent.ListRuns(agent_pb2.ListRunsRequest())).runs
        assert [run.parent_run_id for run in runs] == ([parent.run.run_id, ""] if child_key == "s2" else [""])
        await check_idle(service)


async def test_b_036_a_chatty_session_does_not_starve_the_others(tmp_path: Path, model: ModelServer) -> None:
    """All four places are taken, one of them by A: whoever waits longest goes first, not whoever has most to say."""
    tool = RecordingTool("held", hold=True)
    toml = "\n[agents.defaults]\nmax_concurrent = 4\n"
    async with running_service(tmp_path / "home", model=model, toml=toml, tools=[tool]) as service:
        release_a, release_others = asyncio.Event(), asyncio.Event()
        model.answer(calls_answer(("held", {})), model="g")
        model.answer(held(release_a), model="a")
        model.answer(held(release_others), held(release_others), model="h")
        g_run = await service.accept("g", session_key="g", model="mock/g")
        a_runs = [await service.accept(f"a{number}", session_key="a", model="mock/a") for number in range(50)]
        h_runs = [await service.accept(key, session_key=key, model="mock/h") for key in ("h1", "h2")]
        in_tool = await tool.asked.get()
        await model.received(4)
        lanes = service.service.runs.scheduler.book.lanes()  # what waits where
        assert [(name, active, queued) for name, _, active, queued in lanes if active] == [("main", 4, 49)]

        others = [await service.accept(key, session_key=key) for key in "bcdef"]
        release_a.set()
        for run in others:
            assert (await service.wait(run.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
        for run in a_runs:
            assert (await service.wait(run.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
        order = said(model)[4:]
        # After a0 each place that gets free goes to a session that has not run; A comes again behind all of them.
        assert order[:5] == list("bcdef")
        assert order[5:] == [f"a{number}" for number in range(1, 50)]
        assert (await service.wait(g_run.run_id, 0)).state == run_pb2.RUN_STATE_RUNNING
        release_others.set()
        in_tool.answer.set_result(DONE)
        for run in [g_run, *h_runs]:
            assert (await service.wait(run.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
        await check_idle(service)


async def test_b_037_one_off_sessions_leave_nothing_behind(tmp_path: Path, model: ModelServer) -> None:
    """300 sessions; the case has 20,000, which is the full figure for `make soak`."""
    toml = "\n[lanes.closed]\nmax_concurrent = 0\n"
    async with running_service(tmp_path / "home", model=model, toml=toml) as service:
        rounds = 100
        model.answer(*(failure(400, {"error": {"message": "no"}}) for _ in range(rounds)), model="bad")
        good = [service.finish("x", session_key=f"good-{n}") for n in range(rounds)]
        bad = [service.finish("x", session_key=f"bad-{n}", model="mock/bad") for n in range(rounds)]
        queued = [await service.accept("x", session_key=f"queued-{n}", lane="closed") for n in range(rounds)]
        for run in queued:
            receipt = await service.agent.Abort(agent_pb2.AbortRequest(run_id=run.run_id))
            assert list(receipt.cancelled_run_ids) == [run.run_id]
        ended = [*await asyncio.gather(*good), *await asyncio.gather(*bad)]
        ended += [await service.wait(run.run_id) for run in queued]
        for state in (run_pb2.RUN_STATE_SUCCEEDED, run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_CANCELLED):
            assert sum(each.state == state for each in ended) == rounds
        await check_idle(service)
        followers = service.service.runs.followers  # that nothing is left behind
        assert followers.count == 0
        assert followers._topics == {}  # noqa: SLF001
        assert service.service.parts.locks._held == {}  # noqa: SLF001


async def test_b_037_a_message_that_meets_the_end_of_its_session_is_not_lost(
    service: RunningService, model: ModelServer
) -> None:
    """200 rounds of the case's 1,000: the next message is sent in the step in which the terminal event is read."""
    run_id = (await service.accept("0", session_key="s")).run_id
    run_ids = [run_id]
    for number in range(1, 200):
        async for event in service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0)):
            if event.lifecycle.HasField("ended_at"):
                run_id = (await service.accept(str(number), session_key="s")).run_id
        run_ids.append(run_id)
    for each in run_ids:
        assert (await service.wait(each)).state == run_pb2.RUN_STATE_SUCCEEDED
    assert said(model) == [str(number) for number in range(200)]
    for one, other in zip(model.requests, model.requests[1:], strict=False):
        assert one.ended_at <= other.began_at
    await check_idle(service)


async def test_b_039_refused_messages_leave_nothing_behind(tmp_path: Path, model: ModelServer) -> None:
    """500 messages of the case's 5,000."""
    toml = "\n[limits]\nmax_queued_runs = 100\n[agents.defaults]\nmax_concurrent = 4\n"
    async with running_service(tmp_path / "home", model=model, toml=toml) as service:
        release = asyncio.Event()
        model.answer(*(held(release) for _ in range(104)))
        answers = await asyncio.gather(*(service.accept("x") for _ in range(500)), return_exceptions=True)
        accepted = [answer for answer in answers if isinstance(answer, run_pb2.AgentResponse)]
        errors = [answer for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
        assert 100 <= len(accepted) <= 104
        assert len(accepted) + len(errors) == 500
        refusals = [refusal_of(error) for error in errors]
        assert {(refusal.status, refusal.reason) for refusal in refusals} == {
            (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL")
        }
        assert all("RetryInfo" in refusal.details for refusal in refusals)
        assert all("run_id" not in refusal.metadata for refusal in refusals)
        listed = (await service.agent.ListRuns(agent_pb2.ListRunsRequest(page_size=500))).runs
        assert {run.run_id for run in listed} == {answer.run_id for answer in accepted}
        release.set()
        for answer in accepted:
            assert (await service.wait(answer.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
        await check_idle(service)
