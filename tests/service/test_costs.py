"""What calls cost, wherever it is shown, through the whole service."""

from pathlib import Path

import pytest
from tests.fakes.model_answers import calls_answer, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.service import running_service
from tests.service.agreement import read_ended

from laneway.v1 import session_pb2

PRICES = """
[models.catalog."mock/priced"]
price_input = 1.0
price_output = 10.0
[models.catalog."mock/free"]
price_input = 0
price_output = 0
"""
SESSION = "costs"
KEY = f"agent:main:{SESSION}"


async def test_the_cost_of_each_message_adds_up_to_that_of_run_and_session(tmp_path: Path, model: ModelServer) -> None:
    model.answer(calls_answer(("read", {"path": "none"}), usage=(1000, 100)), text_answer("x", usage=(2000, 300)))
    model.answer(text_answer("y", usage=(500, 0)))
    async with running_service(tmp_path, model=model, toml=PRICES) as service:
        reading = await read_ended(
            service, (await service.accept("hi", session_key=SESSION, model="mock/priced")).run_id
        )
        said = [event.message.usage for event in reading.of_kind("message") if event.message.role == "assistant"]
        assert [usage.cost_usd for usage in said] == pytest.approx([0.002, 0.005])
        assert reading.run.usage.cost_usd == pytest.approx(0.007)
        await read_ended(service, (await service.accept("hi", session_key=SESSION, model="mock/priced")).run_id)
        session = await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key=KEY))
        assert session.usage.cost_usd == pytest.approx(0.0075)
        assert session.context_tokens == 500
        entries = await service.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key=KEY))
        costs = [entry.assistant.usage.cost_usd for entry in entries.entries if entry.WhichOneof("body") == "assistant"]
        assert costs == pytest.approx([0.002, 0.005, 0.0005])


async def test_free_is_zero_and_unknown_is_absent_and_stays_so_for_the_session(
    tmp_path: Path, model: ModelServer
) -> None:
    async with running_service(tmp_path, model=model, toml=PRICES) as service:
        for name, cost, of_session in (
            ("mock/free", 0.0, 0.0),
            ("mock/unpriced", None, None),
            ("mock/free", 0.0, None),
        ):
            model.answer(text_answer("x", usage=(1000, 100)))
            usage = (await service.finish("hi", session_key=SESSION, model=name)).usage
            assert (usage.cost_usd if usage.HasField("cost_usd") else None) == cost
            session = await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key=KEY))
            total = session.usage
            assert (total.cost_usd if total.HasField("cost_usd") else None) == of_session


async def test_each_call_with_a_long_prompt_costs_more_and_the_others_of_its_run_do_not(
    tmp_path: Path, model: ModelServer
) -> None:
    long = '[models.catalog."mock/long"]\nprice_input = 1.0\nprice_output = 10.0\nlong_prompt_tokens = 1000\n'
    long += "long_prompt_input_factor = 2.0\nlong_prompt_output_factor = 1.5\n"
    model.answer(calls_answer(("read", {"path": "none"}), usage=(1000, 100)), text_answer("x", usage=(1001, 100)))
    async with running_service(tmp_path, model=model, toml=long) as service:
        ended = await service.finish("hi", session_key=SESSION, model="mock/long")
    assert ended.usage.cost_usd == pytest.approx(0.002 + 0.002002 + 0.0015)


async def test_a_cost_budget_of_a_session_ends_its_next_run(tmp_path: Path, model: ModelServer) -> None:
    budget = PRICES + "[limits.session]\nmax_cost_usd = 0.01\n"
    model.answer(text_answer("x", usage=(10_000, 0)))
    async with running_service(tmp_path, model=model, toml=budget) as service:
        await service.finish("hi", session_key=SESSION, model="mock/priced")
        refused = await service.finish("hi", session_key=SESSION, model="mock/priced")
        assert refused.error.reason == "BUDGET_EXCEEDED"
        assert "limits.session.max_cost_usd is $0.01" in refused.error.message
        assert len(model.requests) == 1
