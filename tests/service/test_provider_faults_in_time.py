"""Faults of a model service that pass, stall, or are cut short by an abort or a deadline; with both transports."""

import asyncio

import pytest
from google.protobuf.duration_pb2 import Duration
from tests.fakes.model_answers import DONE, Answer, delta, failure, text_answer
from tests.service.agreement import Expected, check_outcome
from tests.service.provider_faults import overload_after_text
from tests.service.provider_stage import ProviderStage

from laneway.v1 import agent_pb2, event_pb2, run_pb2

FAILED = run_pb2.RUN_STATE_FAILED


async def test_a_fault_that_passes_leaves_one_answer_and_no_error(provider: ProviderStage) -> None:
    provider.model.answer(overload_after_text(), failure(500), text_answer("Half a loaf"))
    run_id = await provider.accept()
    await provider.in_backoff()
    await provider.clock.advance(1)
    await provider.in_backoff()
    await provider.clock.advance(2)
    expected = Expected(run_pb2.RUN_STATE_SUCCEEDED, "stop", payloads=("Half a loaf",))
    reading = await check_outcome(provider.service, run_id, expected)
    void, not_shown = [retry.void_message_id for retry in reading.phases(event_pb2.LIFECYCLE_PHASE_RETRY)]
    assert void
    assert not not_shown
    deltas = [event.assistant for event in reading.of_kind("assistant")]
    assert "".join(part.delta for part in deltas if part.message_id == void) == "Half a "
    assert "".join(part.delta for part in deltas if part.message_id != void) == "Half a loaf"
    assert [message["role"] for message in provider.model.requests[-1].messages] == ["system", "user"]
    await provider.lane_is_free()
    texts = [message["content"] for message in provider.model.requests[-1].messages if message["role"] == "assistant"]
    assert texts == ["Half a loaf"]


async def test_the_pending_error_is_gone_when_the_next_try_speaks(provider: ProviderStage) -> None:
    hold = asyncio.Event()
    provider.model.answer(failure(500), Answer([delta(content="Now"), hold, delta("stop"), DONE]))
    run_id = await provider.accept()
    await provider.in_backoff()
    assert (await provider.service.wait(run_id, 0)).error_pending
    await provider.clock.advance(1)
    subscription = provider.service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0))
    while not (await subscription.read()).assistant.delta:
        pass
    subscription.cancel()
    waited = await provider.service.wait(run_id, 0)
    assert not waited.error_pending
    assert not waited.HasField("error")
    hold.set()
    await check_outcome(provider.service, run_id, Expected(run_pb2.RUN_STATE_SUCCEEDED, "stop", payloads=("Now",)))


@pytest.mark.parametrize(
    ("steps", "limit_s", "says", "text", "calls"),
    [
        ([], 7, "no event came within 7 s", "", 2),
        ([delta(content="Half a ")], 30, "stood still for 30 s", "Half a ", 1),
    ],
    ids=["no first event", "idle after text"],
)
async def test_a_stalled_model_is_tried_once_more_if_it_showed_nothing(
    provider: ProviderStage, steps: list[bytes], limit_s: float, says: str, text: str, calls: int
) -> None:
    provider.model.answer(*(Answer([*steps, asyncio.Event()]) for _ in range(calls)))
    run_id = await provider.accept()
    await provider.model.received(1)
    if calls > 1:
        await provider.clock.wait_for_timers(1)
        await provider.clock.advance(limit_s)
        await provider.model.received(2)
    if text:
        subscription = provider.service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0))
        while not (await subscription.read()).assistant.delta:
            pass
        subscription.cancel()
    waiting = asyncio.create_task(provider.service.wait(run_id, 1000))
    await provider.clock.wait_for_timers(2)
    await provider.clock.advance(limit_s - 0.5)
    assert (await provider.service.wait(run_id, 0)).state == run_pb2.RUN_STATE_RUNNING
    await provider.clock.advance(0.5)
    await waiting
    expected = Expected(FAILED, "error", "PROVIDER_STALLED", (text,) if text else ())
    reading = await check_outcome(provider.service, run_id, expected)
    error = reading.run.error
    assert (error.provider, error.model, error.retryable) == ("acme", "m1", True)
    assert says in error.message
    assert "timeout_seconds" in error.message
    assert len(provider.model.requests) == calls
    await provider.model.connections_at_most(0)
    await provider.lane_is_free()


async def test_a_run_whose_time_is_up_while_its_model_is_silent_ends_at_its_deadline(provider: ProviderStage) -> None:
    provider.model.answer(Answer([asyncio.Event()]))
    run_id = await provider.accept(timeout=Duration(seconds=5))
    await provider.model.received(1)
    await provider.clock.advance(5)
    await check_outcome(provider.service, run_id, Expected(run_pb2.RUN_STATE_TIMED_OUT, "deadline", "RUN_DEADLINE"))
    await provider.model.connections_at_most(0)


async def test_an_answer_that_is_whole_but_for_its_end_mark_is_given_before_the_deadline(
    provider: ProviderStage,
) -> None:
    provider.model.answer(Answer([delta(content="All said"), delta("stop"), asyncio.Event()]))
    run_id = await provider.accept(timeout=Duration(seconds=8))
    subscription = provider.service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0))
    while not (await subscription.read()).assistant.delta:
        pass
    subscription.cancel()
    waiting = asyncio.create_task(provider.service.wait(run_id, 1000))
    await provider.clock.wait_for_timers(2)
    await provider.clock.advance(7)
    assert (await waiting).status == agent_pb2.WAIT_STATUS_OK
    await check_outcome(provider.service, run_id, Expected(run_pb2.RUN_STATE_SUCCEEDED, "stop", payloads=("All said",)))


async def test_an_abort_during_the_backoff_ends_the_run_at_once(provider: ProviderStage) -> None:
    provider.model.answer(failure(500))
    run_id = await provider.accept()
    await provider.in_backoff()
    receipt = await provider.service.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))
    assert list(receipt.aborted_run_ids) == [run_id]
    await check_outcome(provider.service, run_id, Expected(run_pb2.RUN_STATE_CANCELLED, "rpc"))
    assert len(provider.model.requests) == 1
    await provider.lane_is_free()


async def test_a_deadline_during_the_backoff_ends_the_run_with_the_deadline(provider: ProviderStage) -> None:
    provider.model.answer(failure(503, None, {"retry-after": "60"}))
    run_id = await provider.accept(timeout=Duration(seconds=10))
    await provider.in_backoff()
    await provider.clock.advance(10)
    expected = Expected(run_pb2.RUN_STATE_TIMED_OUT, "deadline", "RUN_DEADLINE")
    await check_outcome(provider.service, run_id, expected)
    assert len(provider.model.requests) == 1
