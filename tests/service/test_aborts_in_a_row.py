"""Runs on one provider do not disturb each other when they are aborted, with both transports."""

import asyncio

from tests.fakes.model_answers import DONE, Answer, delta, text_answer
from tests.service.provider_stage import ProviderStage

from laneway.v1 import agent_pb2

ABORTS = 200


async def test_two_hundred_aborts_in_a_row_leave_a_run_beside_them_and_the_next_one_alone(
    provider: ProviderStage,
) -> None:
    go_on = asyncio.Event()
    provider.model.answer(Answer([delta(content="Slow and "), go_on, delta(content="steady"), delta("stop"), DONE]))
    service = provider.service
    beside = (await service.accept("go", session_key="beside", model="acme/m1")).run_id
    await provider.model.received(1)
    for number in range(ABORTS):
        # Cut in the middle of an answer, or before its first byte.
        cut = Answer([delta(content="x"), asyncio.Event()]) if number % 2 else Answer(before=asyncio.Event())
        provider.model.answer(cut)
        run_id = await provider.accept()
        await provider.model.received(number + 2)
        receipt = await service.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))
        assert list(receipt.aborted_run_ids) == [run_id]
    provider.model.answer(text_answer("fine"))
    waited = await service.wait(await provider.accept())
    assert [payload.text for payload in waited.payloads] == ["fine"]
    go_on.set()
    waited = await service.wait(beside)
    assert [payload.text for payload in waited.payloads] == ["Slow and steady"]
    await provider.model.connections_at_most(2)
