"""Cases of group b: one key for one run, and what Wait says at any time."""

import asyncio

import grpc
from tests.cases.answers import held
from tests.cases.observing import entries_of, observe
from tests.cases.refusals import refused
from tests.cases.stage import Stage
from tests.fakes.model_answers import failure
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService

from laneway.v1 import agent_pb2, event_pb2, run_pb2


async def test_b_031_one_key_is_one_run_however_often_it_is_sent(service: RunningService, model: ModelServer) -> None:
    release = asyncio.Event()
    model.answer(held(release))

    async def send() -> run_pb2.AgentResponse:
        return await service.accept("m", session_key="s", idempotency_key="k")

    answers = list(await asyncio.gather(*(send() for _ in range(20))))
    await model.received(1)
    answers.append(await send())
    release.set()
    run_id = answers[0].run_id
    observed = await observe(service, run_id)
    answers.append(await send())

    assert {answer.run_id for answer in answers} == {run_id}
    assert {answer.accepted_at.ToNanoseconds() for answer in answers} == {observed.run.accepted_at.ToNanoseconds()}
    assert [answer.duplicate for answer in answers].count(False) == 1
    assert answers[-1].duplicate
    assert len(model.requests) == 1
    assert [entry.WhichOneof("body") for entry in await entries_of(service, "s")] == ["user", "assistant"]


async def test_b_032_a_failure_that_a_retry_follows_is_no_end(timed_stage: Stage) -> None:
    """The variant with an overflow comes with compaction."""
    service, model, clock = timed_stage.service, timed_stage.model, timed_stage.clock
    model.answer(failure(529, {"error": {"message": "overloaded"}}, {"retry-after": "3"}))
    run_id = (await service.accept("m", session_key="s")).run_id
    await clock.wait_for_sleepers(1)  # the back-off

    timers = clock.timer_count
    patient = [asyncio.ensure_future(service.wait(run_id, 20)) for _ in range(2)]
    hasty = asyncio.ensure_future(service.wait(run_id, 1))
    await clock.wait_for_timers(timers + 3)
    await clock.advance(1)
    expired = await hasty
    assert (expired.status, expired.timeout_kind) == (
        agent_pb2.WAIT_STATUS_TIMEOUT,
        agent_pb2.TIMEOUT_KIND_WAIT_EXPIRED,
    )
    assert expired.state == run_pb2.RUN_STATE_RUNNING
    assert expired.error_pending
    assert (expired.error.reason, expired.error.http_status) == ("PROVIDER_UNAVAILABLE", 529)
    assert not expired.HasField("ended_at")
    assert not any(wait.done() for wait in patient)

    timers = clock.timer_count
    later = asyncio.ensure_future(service.wait(run_id, 20))
    await clock.wait_for_timers(timers + 1)
    await clock.advance(2)
    answers = [*await asyncio.gather(*patient, later), await service.wait(run_id, 20)]
    observed = await observe(service, run_id)
    assert all(answer == observed.waited for answer in answers)
    assert observed.waited.status == agent_pb2.WAIT_STATUS_OK
    assert not observed.waited.HasField("error")
    retries = [event.lifecycle for event in observed.events if event.lifecycle.HasField("delay")]
    assert [(retry.phase, retry.delay.ToMilliseconds()) for retry in retries] == [
        (event_pb2.LIFECYCLE_PHASE_RETRY, 3000)
    ]
    assert observed.payloads == ["ok"]
    assert len(model.requests) == 2


async def test_b_033_wait_says_what_is_known_and_never_hangs(timed_stage: Stage) -> None:
    """Nothing here is waited for in real time: the clock moves only where it says so."""
    service, model, clock = timed_stage.service, timed_stage.model, timed_stage.clock
    not_found = (grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND")
    assert await refused(service.wait("no-such-run", 2)) == not_found

    release = asyncio.Event()
    model.answer(held(release))
    run_id = (await service.accept("m1", session_key="s")).run_id
    await model.received(1)
    probe = await service.wait(run_id, 0)
    assert probe.timeout_kind == agent_pb2.TIMEOUT_KIND_WAIT_EXPIRED
    assert probe.state == run_pb2.RUN_STATE_RUNNING
    assert await refused(service.wait(run_id, -1)) == (grpc.StatusCode.INVALID_ARGUMENT, "TIMEOUT_INVALID")

    timers = clock.timer_count
    default = asyncio.ensure_future(service.agent.Wait(agent_pb2.WaitRequest(run_id=run_id)))
    await clock.wait_for_timers(timers + 1)
    await clock.advance(29.9)
    await service.wait(run_id, 0)  # an answer that was due would have come before this one
    assert not default.done()
    await clock.advance(0.1)
    assert (await default).timeout_kind == agent_pb2.TIMEOUT_KIND_WAIT_EXPIRED

    queued_id = (await service.accept("m2", session_key="s")).run_id
    timers = clock.timer_count
    queued = asyncio.ensure_future(service.wait(queued_id, 0.2))
    await clock.wait_for_timers(timers + 1)
    await clock.advance(0.2)
    assert (await queued).state == run_pb2.RUN_STATE_QUEUED
    assert (await queued).timeout_kind == agent_pb2.TIMEOUT_KIND_WAIT_EXPIRED

    release.set()
    first = await observe(service, run_id)
    assert first.run.state == (await service.wait(queued_id)).state == run_pb2.RUN_STATE_SUCCEEDED

    others = [await service.accept("x") for _ in range(200)]
    await asyncio.gather(*(service.wait(other.run_id) for other in others))
    assert await service.wait(run_id) == first.waited

    await clock.wait_for_upkeep("retention")
    for days in (31, 0.01):  # the retention of rows is over; retention looks once a minute
        await clock.advance(days * 86_400)
        await clock.wait_for_upkeep("retention")
    assert await refused(service.wait(run_id, 2)) == not_found
