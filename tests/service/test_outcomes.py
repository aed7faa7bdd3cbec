"""Every outcome that can be produced now: one producer each, one check for all (CONTRACT, Outcomes)."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import Answer, End, calls_answer, delta, failure, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import END, ERROR, Expected, check_outcome, get_run, read_ended, runs_of

from laneway.v1 import agent_pb2, run_pb2, session_pb2
from lanewayd.app import Seams
from lanewayd.events import Lifecycle, LifecyclePhase, NewEvent
from lanewayd.records import RunState
from lanewayd.rpc.event_codec import WireEventCodec
from lanewayd.store.interface import StartRun
from lanewayd.store.sqlite import SqliteStore
from lanewayd.transcript.lock import SessionLocks

SUCCEEDED = run_pb2.RUN_STATE_SUCCEEDED
FAILED = run_pb2.RUN_STATE_FAILED
CANCELLED = run_pb2.RUN_STATE_CANCELLED
TIMED_OUT = run_pb2.RUN_STATE_TIMED_OUT
SESSION = "outcomes"
LOCK_TIMEOUT_S = 0.04
SETTINGS = """
[session.write_lock]
acquire_timeout_ms = 40
[queue]
cap = 1
[limits]
max_tokens = 1000
[limits.session]
max_tokens = 1500
"""


@dataclass
class Stage:
    """A service whose clock stands still, with a tool `rec` that waits for the test."""

    service: RunningService
    model: ModelServer
    tool: RecordingTool
    clock: FakeClock

    async def at_work(self, text: str = "Working. ") -> str:
        """A run of SESSION that has said `text` and stands in a tool call."""
        self.model.answer(calls_answer(("rec", {}), text=text))
        accepted = await self.service.accept("work", session_key=SESSION)
        await self.tool.asked.get()
        return accepted.run_id

    async def with_answer(self, *answers: Answer, **fields: object) -> str:
        """A run whose model calls get `answers`."""
        self.model.answer(*answers)
        return (await self.service.accept("hi", session_key=SESSION, **fields)).run_id

    async def queued_behind_work(self) -> str:
        """A run that waits behind one at work."""
        await self.at_work()
        return (await self.service.accept("later", session_key=SESSION)).run_id


@pytest.fixture
async def stage(tmp_path: Path, model: ModelServer) -> AsyncGenerator[Stage, None]:
    clock, tool = FakeClock(), RecordingTool("rec", hold=True)
    async with running_service(
        tmp_path / "home", model=model, tools=[tool], toml=SETTINGS, seams=Seams(clock=clock)
    ) as service:
        yield Stage(service, model, tool, clock)


async def _finished(stage: Stage) -> str:
    return await stage.with_answer(text_answer("Hel", "lo"))


async def _silent(stage: Stage) -> str:
    return await stage.with_answer(text_answer(), text_answer())


async def _by_length(stage: Stage) -> str:
    return await stage.with_answer(Answer([delta(content="Hel"), delta("length")], end=End.COMPLETE))


async def _own_word(stage: Stage) -> str:
    return await stage.with_answer(Answer([delta(content="Hello"), delta("end")]))


async def _rejected(stage: Stage) -> str:
    return await stage.with_answer(failure(400, {"error": {"message": "no such parameter"}}))


async def _cut_after_text(stage: Stage) -> str:
    return await stage.with_answer(Answer([delta(content="Half a sen")], end=End.CUT))


async def _failed_after_a_turn(stage: Stage) -> str:
    run_id = await stage.at_work("Let me look. ")
    stage.model.answer(failure(401, {"error": {"message": "bad key"}}))
    stage.tool.calls[-1].answer.set_result(DONE)
    return run_id


async def _turn_cap(stage: Stage) -> str:
    run_id = await stage.with_answer(calls_answer(("rec", {}), text="Once. "), max_turns=1)
    (await stage.tool.asked.get()).answer.set_result(DONE)
    return run_id


async def _budget_of_the_run(stage: Stage) -> str:
    run_id = await stage.with_answer(calls_answer(("rec", {}), text="Long. ", usage=(900, 100)))
    (await stage.tool.asked.get()).answer.set_result(DONE)
    return run_id


async def _budget_of_the_session(stage: Stage) -> str:
    before = await read_ended(stage.service, await stage.with_answer(text_answer("All of it.", usage=(1400, 100))))
    assert before.run.state == SUCCEEDED, "an answer that is there is not thrown away"
    return (await stage.service.accept("more", session_key=SESSION)).run_id


async def _schema_mismatch(stage: Stage) -> str:
    for text in ("no", '{"n": "one"}', '{"m": 1}'):
        stage.model.answer(text_answer(text))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    return (await stage.service.accept("hi", session_key=SESSION, response_schema=schema)).run_id


async def _no_tools(stage: Stage) -> str:
    return (await stage.service.accept("hi", session_key=SESSION, tools_allow=["nothing-of-this-name"])).run_id


async def _fault_of_ours(stage: Stage) -> str:
    workspaces = stage.service.home / "workspaces"
    workspaces.rmdir()
    workspaces.write_text("a file where a folder should be")
    return (await stage.service.accept("hi", session_key=SESSION)).run_id


async def _session_busy(stage: Stage) -> str:
    locks = SessionLocks(stage.service.home / "locks", clock=stage.clock, acquire_timeout_s=1)
    held = await locks.acquire("default", f"agent:main:{SESSION}", run_id="another process")
    try:
        accepted = await stage.service.accept("hi", session_key=SESSION)
        await stage.clock.wait_for_sleepers(1)
        await stage.clock.advance(LOCK_TIMEOUT_S)
        await stage.service.wait(accepted.run_id)
        return accepted.run_id
    finally:
        await locks.release(held)
        locks.close()


async def _aborted_at_work(stage: Stage) -> str:
    run_id = await stage.at_work()
    receipt = await stage.service.agent.Abort(agent_pb2.AbortRequest(run_id=run_id, reason="enough"))
    assert receipt == agent_pb2.AbortResponse(aborted_run_ids=[run_id])
    return run_id


async def _interrupted(stage: Stage) -> str:
    run_id = await stage.at_work()
    newer = await stage.service.accept("newer", session_key=SESSION, queue_mode=agent_pb2.QUEUE_MODE_INTERRUPT)
    assert newer.disposition == run_pb2.DISPOSITION_INTERRUPTED_PREVIOUS
    return run_id


async def _dropped(stage: Stage) -> str:
    await stage.at_work()
    collect = agent_pb2.QUEUE_MODE_COLLECT
    oldest, _ = [await stage.service.accept(text, session_key=SESSION, queue_mode=collect) for text in ("1", "2")]
    return oldest.run_id


async def _aborted_in_mid_stream(stage: Stage) -> str:
    hold = asyncio.Event()
    run_id = await stage.with_answer(Answer([delta(content="I was say"), hold, delta("stop")]))
    await _shown(stage.service, run_id, "I was say")
    await stage.service.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))
    return run_id


async def _aborted_while_queued(stage: Stage) -> str:
    run_id = await stage.queued_behind_work()
    receipt = await stage.service.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))
    assert receipt == agent_pb2.AbortResponse(cancelled_run_ids=[run_id])
    return run_id


async def _reset_at_work(stage: Stage) -> str:
    run_id = await stage.at_work()
    answer = await stage.service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key=SESSION, force=True))
    assert list(answer.aborted_run_ids) == [run_id]
    return run_id


async def _reset_while_queued(stage: Stage) -> str:
    run_id = await stage.queued_behind_work()
    await stage.service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key=SESSION, force=True))
    return run_id


async def _deleted_at_work(stage: Stage) -> str:
    run_id = await stage.at_work()
    answer = await stage.service.sessions.DeleteSession(
        session_pb2.DeleteSessionRequest(session_key=SESSION, force=True)
    )
    assert list(answer.aborted_run_ids) == [run_id]
    return run_id


async def _deleted_while_queued(stage: Stage) -> str:
    run_id = await stage.queued_behind_work()
    await stage.service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key=SESSION, force=True))
    return run_id


async def _deleted_after_a_failure(stage: Stage) -> str:
    run_id = await _cut_after_text(stage)
    await read_ended(stage.service, run_id)
    await stage.service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key=SESSION))
    return run_id


async def _deadline(stage: Stage) -> str:
    stage.model.answer(calls_answer(("rec", {}), text="Working. "))
    accepted = await stage.service.accept("work", session_key=SESSION, timeout=Duration(seconds=5))
    await stage.tool.asked.get()
    await stage.clock.advance(4.9)
    assert (await stage.service.wait(accepted.run_id, 0)).state == run_pb2.RUN_STATE_RUNNING
    await stage.clock.advance(0.1)
    return accepted.run_id


async def _shown(service: RunningService, run_id: str, text: str) -> None:
    """Return when the run's log shows `text`."""
    seen = ""
    subscription = service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0))
    while seen != text:
        seen += (await subscription.read()).assistant.delta
    subscription.cancel()


PRODUCERS: list[tuple[Callable[[Stage], Awaitable[str]], Expected]] = [
    (_finished, Expected(SUCCEEDED, "stop", payloads=("Hello",), used_tokens=(3, 2))),
    (_silent, Expected(FAILED, "error", "PROVIDER_BAD_RESPONSE", used_tokens=(6, 4))),
    (_by_length, Expected(SUCCEEDED, "length", payloads=("Hel",), truncated=True)),
    (_own_word, Expected(SUCCEEDED, "end", payloads=("Hello",))),
    (_rejected, Expected(FAILED, "error", "PROVIDER_REQUEST_REJECTED")),
    (_cut_after_text, Expected(FAILED, "error", "PROVIDER_STREAM_CUT", ("Half a sen",))),
    (_failed_after_a_turn, Expected(FAILED, "error", "PROVIDER_AUTH", ("Let me look. ",))),
    (_turn_cap, Expected(FAILED, "error", "MAX_TURNS", ("Once. ",))),
    (_budget_of_the_run, Expected(FAILED, "error", "BUDGET_EXCEEDED", ("Long. ",), used_tokens=(900, 100))),
    (_budget_of_the_session, Expected(FAILED, "error", "BUDGET_EXCEEDED", used_tokens=(0, 0))),
    (
        _schema_mismatch,
        Expected(FAILED, "error", "OUTPUT_SCHEMA_MISMATCH", ('{"m": 1}',), used_tokens=(9, 6)),
    ),
    (_no_tools, Expected(FAILED, "error", "TOOLS_EMPTY")),
    (_fault_of_ours, Expected(FAILED, "error", "INTERNAL")),
    (_session_busy, Expected(FAILED, "error", "SESSION_BUSY")),
    (_aborted_at_work, Expected(CANCELLED, "rpc", payloads=("Working. ",))),
    (_interrupted, Expected(CANCELLED, "interrupt", payloads=("Working. ",))),
    (_dropped, Expected(CANCELLED, "dropped", was_started=False)),
    (_aborted_in_mid_stream, Expected(CANCELLED, "rpc", payloads=("I was say",))),
    (_aborted_while_queued, Expected(CANCELLED, "rpc", was_started=False)),
    (_reset_at_work, Expected(CANCELLED, "reset", payloads=("Working. ",))),
    (_reset_while_queued, Expected(CANCELLED, "reset", was_started=False)),
    (_deleted_at_work, Expected(CANCELLED, "deleted", is_log_whole=False)),
    (_deleted_while_queued, Expected(CANCELLED, "deleted", was_started=False, is_log_whole=False)),
    (_deleted_after_a_failure, Expected(FAILED, "error", "PROVIDER_STREAM_CUT", is_log_whole=False)),
    (_deadline, Expected(TIMED_OUT, "deadline", "RUN_DEADLINE", ("Working. ",))),
]


@pytest.mark.parametrize(
    ("produce", "expected"), PRODUCERS, ids=[produce.__name__.strip("_") for produce, _ in PRODUCERS]
)
async def test_an_outcome_reads_the_same_through_wait_get_list_and_log(
    stage: Stage, produce: Callable[[Stage], Awaitable[str]], expected: Expected
) -> None:
    await check_outcome(stage.service, await produce(stage), expected)


async def test_a_run_that_the_server_died_of_three_times_is_given_up(tmp_path: Path, model: ModelServer) -> None:
    home = tmp_path / "home"
    lane = "[lanes.held]\nmax_concurrent = 0\n"
    async with running_service(home, model=model, toml=lane) as service:
        run_id = (await service.accept("poison", session_key=SESSION, lane="held")).run_id
    await _die_of_it(home, run_id, times=3)
    async with running_service(home, model=model, toml=lane) as service:
        expected = Expected(FAILED, "error", "RECOVERY_EXHAUSTED")
        reading = await check_outcome(service, run_id, expected)
        assert "3 times" in reading.run.error.message
    assert model.requests == []


async def _die_of_it(home: Path, run_id: str, *, times: int) -> None:
    """What a run leaves that was started and then recovered `times` times by processes that died at once."""
    clock = FakeClock()
    store = await SqliteStore.open(home / "laneway.db", codec=WireEventCodec(), clock=clock)
    await store.start(StartRun(run_id, clock.now(), recovered=False, events=(_start_event(clock),)))
    for _ in range(times):
        await store.start(StartRun(run_id, clock.now(), recovered=True))
    await store.close()


def _start_event(clock: FakeClock) -> NewEvent:
    start = Lifecycle(LifecyclePhase.START, RunState.RUNNING.value, started_at=clock.now())
    return NewEvent(clock.now(), start)


async def test_a_wait_that_expires_says_that_the_run_is_queued(stage: Stage) -> None:
    run_id = await stage.queued_behind_work()
    await _check_goes_on(stage.service, run_id, run_pb2.RUN_STATE_QUEUED, await stage.service.wait(run_id, 0))


async def test_a_wait_that_expires_says_that_the_run_is_at_work(stage: Stage) -> None:
    run_id = await stage.at_work()
    waiting = asyncio.create_task(stage.service.wait(run_id, 5))
    await stage.clock.wait_for_timers(stage.clock.timer_count + 1)
    await stage.clock.advance(5)
    await _check_goes_on(stage.service, run_id, run_pb2.RUN_STATE_RUNNING, await waiting)


@pytest.mark.parametrize("is_queued", [False, True], ids=["at work", "queued"])
async def test_a_wait_that_the_server_leaves_says_draining(stage: Stage, is_queued: bool) -> None:
    run_id = await (stage.queued_behind_work() if is_queued else stage.at_work())
    waiting = asyncio.create_task(stage.service.wait(run_id, 3000))
    await stage.clock.wait_for_timers(stage.clock.timer_count + 1)
    stage.service.service.request_drain()
    stage.service.service.request_drain()
    waited = await waiting
    state = run_pb2.RUN_STATE_QUEUED if is_queued else run_pb2.RUN_STATE_RUNNING
    assert (waited.status, waited.timeout_kind) == (
        agent_pb2.WAIT_STATUS_TIMEOUT,
        agent_pb2.TIMEOUT_KIND_DRAINING,
    )
    assert waited.state == state
    assert not waited.HasField("ended_at")
    assert not waited.HasField("error")


async def _check_goes_on(
    service: RunningService, run_id: str, state: run_pb2.RunState, waited: agent_pb2.WaitResponse
) -> None:
    """The run has not ended, and everybody says so."""
    assert waited.status == agent_pb2.WAIT_STATUS_TIMEOUT
    assert waited.timeout_kind == agent_pb2.TIMEOUT_KIND_WAIT_EXPIRED
    run = await get_run(service, run_id)
    assert run in await runs_of(service, run.session_key)
    assert waited.state == run.state == state
    assert (waited.accepted_at, waited.started_at) == (run.accepted_at, run.started_at)
    assert waited.HasField("started_at") == run.HasField("started_at") == (state == run_pb2.RUN_STATE_RUNNING)
    for answer in (waited, run):
        assert not answer.HasField("ended_at")
        assert not answer.HasField("error")
        assert not answer.stop_reason
        assert not answer.payloads
    subscription = service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id))
    snapshot = await subscription.read()
    assert snapshot.snapshot.run == run
    events = [await subscription.read() for _ in range(snapshot.snapshot.last_seq)]
    assert [event.seq for event in events] == list(range(1, run.last_seq + 1))
    assert not [event for event in events if event.lifecycle.phase in (END, ERROR)]
    subscription.cancel()
