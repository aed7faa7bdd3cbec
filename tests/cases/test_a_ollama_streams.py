"""Cases of group a in Ollama's own language, over real HTTP."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.cases.case_files import case
from tests.cases.observing import check_idle, observe, strict_json
from tests.cases.speaking import MODEL, play_native, stage_speaking
from tests.cases.stage import Stage
from tests.fakes.languages import LANGUAGES
from tests.fakes.model_answers import Answer, End
from tests.fakes.model_server import ModelServer

from laneway.v1 import agent_pb2, event_pb2, run_pb2

says = LANGUAGES["ollama"].text


@pytest.fixture
async def stage(tmp_path: Path, model: ModelServer) -> AsyncGenerator[Stage, None]:
    async with stage_speaking("ollama", tmp_path / "home", model) as speaking:
        yield speaking


@pytest.fixture
async def timed_stage(tmp_path: Path, model: ModelServer) -> AsyncGenerator[Stage, None]:
    async with stage_speaking("ollama", tmp_path / "home", model, is_timed=True) as speaking:
        yield speaking


async def test_b_025_calls_before_the_last_line_run_and_go_back_as_objects(stage: Stage) -> None:
    observed = await play_native(stage, case("B-025").answer(), says("ok"))
    assert observed.run.state == run_pb2.RUN_STATE_SUCCEEDED
    assert observed.payloads == ["ok"]
    assert stage.rec.seen == [{"a": {"b": 1}}, {}]
    ids = stage.rec.call_ids
    assert len(set(ids)) == 2
    assert all(ids)
    assert [call.call_id for call in observed.calls] == ids
    assert [tool.call_id for tool in observed.tools(event_pb2.TOOL_PHASE_START)] == ids

    sent = strict_json(stage.model.requests[1].body)["messages"]
    asked, *results = sent[-3:]
    assert asked["role"] == "assistant"
    assert [call["function"] for call in asked["tool_calls"]] == [
        {"name": "rec", "arguments": {"a": {"b": 1}}},
        {"name": "rec", "arguments": {}},
    ]
    assert [(result["role"], result["tool_name"], result["content"]) for result in results] == [
        ("tool", "rec", "r1"),
        ("tool", "rec", "r2"),
    ]
    assert [request.path for request in stage.model.requests] == ["/api/chat"] * 2

    usage = observed.answers[0].usage
    assert (usage.input_tokens, usage.output_tokens, usage.unavailable) == (31, 5, False)
    assert (observed.text, observed.reasoning) == ("ok", "hm")
    assert not [block for block in observed.answers[0].content if block.text]
    # Within the tool loop the model gets its thoughts back.
    assert asked["thinking"] == "hm"


async def test_b_026_an_error_in_the_stream_fails_the_attempt_with_its_message(timed_stage: Stage) -> None:
    stage = timed_stage
    stage.model.answer(case("B-026").answer(), says("Better."))
    accepted = await stage.service.accept("go", session_key="s", model=MODEL)
    async for event in stage.service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=accepted.run_id, after_seq=0)):
        if event.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_RETRY:
            assert event.lifecycle.error.reason == "PROVIDER_UNAVAILABLE"
            assert "an error was encountered while running the model" in event.lifecycle.error.message
            await stage.clock.advance(1)
    observed = await observe(stage.service, accepted.run_id)
    assert observed.run.state == run_pb2.RUN_STATE_SUCCEEDED
    assert (observed.payloads, observed.text) == (["Better."], "Better.")
    assert len(stage.model.requests) == 2
    assert b"Yes" not in stage.model.requests[1].body


async def test_b_026_without_a_done_line_the_stream_was_cut(stage: Stage) -> None:
    first, error, _ = case("B-026").body().split(b"\n")
    assert b'"error"' in error
    observed = await play_native(stage, Answer([first + b"\n"], end=End.CLOSE))
    assert observed.run.state == run_pb2.RUN_STATE_FAILED
    assert observed.run.error.reason == "PROVIDER_STREAM_CUT"
    assert observed.run.error.provider == "native"
    assert len(stage.model.requests) == 1
    await check_idle(stage.service)
    # What was cut is not said to the model again.
    again = await play_native(stage, says("ok"))
    assert again.payloads == ["ok"]
    assert b"Yes" not in stage.model.requests[1].body
