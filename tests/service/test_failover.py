"""Failover through the whole service: three model services over real HTTP as one chain, watchers told once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fakes.model_answers import DONE, Answer, End, delta, failure, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import Reading, get_run, read_ended

from laneway.v1 import event_pb2, run_pb2

RETRY = event_pb2.LIFECYCLE_PHASE_RETRY
FALLBACK = event_pb2.LIFECYCLE_PHASE_FALLBACK
CLEARED = event_pb2.LIFECYCLE_PHASE_FALLBACK_CLEARED
LIMIT = (429, {"error": {"message": "slow down"}}, {"retry-after": "3600"})
CHAIN = '[agents.defaults]\nmodel = "limited/m"\nfallbacks = ["failing/m", "working/m"]\n'


@dataclass
class Chain:
    """A service whose runs call `limited/m`, then `failing/m`, then `working/m`."""

    service: RunningService
    limited: ModelServer
    failing: ModelServer
    working: ModelServer

    async def run(self) -> Reading:
        """A message in the one session, to its end."""
        return await read_ended(self.service, (await self.service.accept("hi", session_key="s", model="")).run_id)


@pytest.fixture
async def chain(tmp_path: Path) -> AsyncIterator[Chain]:
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(ModelServer()) for _ in range(3)]
        names = ("limited", "failing", "working")
        providers = "".join(
            f'[models.providers.{name}]\napi = "openai_chat"\nbase_url = "{server.base_url}"\n'
            for name, server in zip(names, servers, strict=True)
        )
        service = await stack.enter_async_context(running_service(tmp_path / "home", toml=CHAIN + providers))
        yield Chain(service, *servers)


def told(reading: Reading) -> list[tuple[str, str, str]]:
    """Each RETRY, FALLBACK and FALLBACK_CLEARED: phase, the provider it names, the reason."""
    return [
        (event_pb2.LifecyclePhase.Name(step.phase).removeprefix("LIFECYCLE_PHASE_"), step.provider, step.error.reason)
        for step in (event.lifecycle for event in reading.of_kind("lifecycle"))
        if step.phase in (RETRY, FALLBACK, CLEARED)
    ]


async def test_a_chain_answers_with_its_last_model_tells_it_once_and_comes_back(chain: Chain) -> None:
    chain.limited.answer(failure(*LIMIT), failure(*LIMIT))
    chain.failing.answer(failure(503), failure(503))
    chain.working.answer(text_answer("from the third"), text_answer("again"))

    first = await chain.run()
    assert [payload.text for payload in first.waited.payloads] == ["from the third"]
    assert first.run.model == "working/m"
    assert told(first) == [
        ("FALLBACK", "failing", "PROVIDER_RATE_LIMITED"),
        ("FALLBACK", "working", "PROVIDER_UNAVAILABLE"),
    ]

    second = await chain.run()
    assert [payload.text for payload in second.waited.payloads] == ["again"]
    assert told(second) == [("RETRY", "limited", "PROVIDER_RATE_LIMITED"), ("RETRY", "failing", "PROVIDER_UNAVAILABLE")]

    chain.limited.answer(text_answer("back"))
    third = await chain.run()
    assert [payload.text for payload in third.waited.payloads] == ["back"]
    assert (third.run.model, told(third)) == ("limited/m", [("FALLBACK_CLEARED", "limited", "")])

    fourth = await chain.run()
    assert told(fourth) == []
    assert len(chain.working.requests) == 2


async def test_another_model_that_answers_in_a_later_run_is_announced_when_its_answer_is_whole(chain: Chain) -> None:
    chain.limited.answer(failure(*LIMIT), failure(*LIMIT))
    chain.failing.answer(failure(503), text_answer("better now"))
    await chain.run()
    second = await chain.run()
    assert told(second) == [
        ("RETRY", "limited", "PROVIDER_RATE_LIMITED"),
        ("FALLBACK", "failing", "PROVIDER_RATE_LIMITED"),
    ]
    kinds = [event.WhichOneof("payload") for event in second.events]
    assert kinds[-3:] == ["message", "lifecycle", "lifecycle"]


async def test_what_a_failed_model_had_said_is_void_and_stands_in_no_transcript(chain: Chain) -> None:
    chain.limited.answer(Answer([delta(content="Half a ")], end=End.CUT))
    chain.failing.answer(text_answer("A whole answer"))
    reading = await chain.run()
    assert reading.run.state == run_pb2.RUN_STATE_SUCCEEDED
    [fallback] = reading.phases(FALLBACK)
    texts = {event.assistant.message_id: event.assistant.delta for event in reading.of_kind("assistant")}
    assert texts[fallback.void_message_id] == "Half a "
    assert [payload.text for payload in reading.waited.payloads] == ["A whole answer"]
    sent = (await chain.run(), chain.limited.requests[-1].messages)[1]
    assert [message["content"] for message in sent if message["role"] == "assistant"] == ["A whole answer"]


async def test_a_chain_that_fails_whole_ends_with_one_error_that_lists_its_models(chain: Chain) -> None:
    chain.limited.answer(failure(*LIMIT))
    chain.failing.answer(failure(402, {"error": {"message": "no credit"}}))
    chain.working.answer(failure(401, {"error": {"message": "bad key"}}))
    reading = await chain.run()
    error = reading.run.error
    assert (reading.run.state, error.reason, error.provider) == (
        run_pb2.RUN_STATE_FAILED,
        "PROVIDER_AUTH",
        "working",
    )
    for part in ("limited/m: rate_limit", "failing/m: billing", "working/m: auth", "HTTP 429", "HTTP 402", "HTTP 401"):
        assert part in error.message
    assert (await get_run(chain.service, reading.run.run_id)).error == error


async def test_while_another_model_is_asked_a_wait_shows_the_failure_and_that_it_is_not_the_end(chain: Chain) -> None:
    held = asyncio.Event()
    chain.limited.answer(failure(*LIMIT))
    chain.failing.answer(Answer([held, delta(content="fine"), delta("stop"), DONE]))
    run_id = (await chain.service.accept("hi", session_key="s", model="")).run_id
    await chain.failing.received(1)
    waited = await chain.service.wait(run_id, 0)
    assert (waited.state, waited.error_pending) == (run_pb2.RUN_STATE_RUNNING, True)
    assert (waited.error.reason, waited.error.provider) == ("PROVIDER_RATE_LIMITED", "limited")
    held.set()
    reading = await read_ended(chain.service, run_id)
    assert (reading.run.model, reading.waited.error_pending) == ("failing/m", False)


async def test_a_request_that_is_wrong_in_itself_is_not_tried_with_other_models(chain: Chain) -> None:
    chain.limited.answer(failure(400, {"error": {"message": "no such parameter"}}))
    reading = await chain.run()
    assert reading.run.error.reason == "PROVIDER_REQUEST_REJECTED"
    assert (len(chain.failing.requests), len(chain.working.requests), told(reading)) == (0, 0, [])
