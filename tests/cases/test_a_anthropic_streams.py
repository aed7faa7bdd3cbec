"""Cases of group a in Anthropic's own language, over real HTTP."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.cases.case_files import case
from tests.cases.observing import check_idle, observe
from tests.cases.speaking import MODEL, play_native, stage_speaking
from tests.cases.stage import Stage
from tests.fakes.languages import LANGUAGES
from tests.fakes.model_answers import Answer
from tests.fakes.model_server import ModelServer, RecordedRequest
from tests.unit.providers.anthropic.conversations import check_request

from laneway.v1 import agent_pb2, event_pb2, run_pb2

THOUGHTS = [
    {"type": "thinking", "thinking": "step  one \n", "signature": "c2lnLTE+/w=="},
    {"type": "redacted_thinking", "data": "b3BhcXVl"},
]


@pytest.fixture
async def stage(tmp_path: Path, model: ModelServer) -> AsyncGenerator[Stage, None]:
    async with stage_speaking("anthropic", tmp_path / "home", model) as speaking:
        yield speaking


@pytest.fixture
async def timed_stage(tmp_path: Path, model: ModelServer) -> AsyncGenerator[Stage, None]:
    async with stage_speaking("anthropic", tmp_path / "home", model, is_timed=True) as speaking:
        yield speaking


def says(text: str) -> Answer:
    """A whole answer."""
    return LANGUAGES["anthropic"].text(text)


def turns(request: RecordedRequest) -> list[dict[str, Any]]:
    """The turns of a request, after the checks of a strict service, without cache marks."""
    assert request.path == "/v1/messages"
    assert request.headers["anthropic-version"] == "2023-06-01"
    sent = check_request(request.body)
    for turn in sent:
        for block in turn["content"]:
            block.pop("cache_control", None)
    return sent


def kinds(turn: dict[str, Any]) -> list[str]:
    return [block["type"] for block in turn["content"]]


async def test_b_018_an_error_after_partial_text_is_tried_again_and_the_text_is_void(timed_stage: Stage) -> None:
    stage = timed_stage
    stage.model.answer(case("B-018").answer(), says("Whole."))
    accepted = await stage.service.accept("go", session_key="s", model=MODEL)
    shown: dict[str, str] = {}
    voided: list[str] = []
    async for event in stage.service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=accepted.run_id, after_seq=0)):
        if event.WhichOneof("payload") == "assistant":
            shown[event.assistant.message_id] = shown.get(event.assistant.message_id, "") + event.assistant.delta
        if event.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_RETRY:
            assert event.lifecycle.error.reason == "PROVIDER_UNAVAILABLE"
            assert "Overloaded" in event.lifecycle.error.message
            voided.append(event.lifecycle.void_message_id)
            await stage.clock.advance(1)
    assert [text for message_id, text in shown.items() if message_id in voided] == ["Half a "]
    observed = await observe(stage.service, accepted.run_id)
    assert observed.run.state == run_pb2.RUN_STATE_SUCCEEDED
    assert (observed.payloads, observed.text) == (["Whole."], "Whole.")
    assert len(stage.model.requests) == 2
    assert b"Half" not in stage.model.requests[1].body


async def test_b_018_without_another_try_the_run_fails_with_the_reason(timed_stage: Stage) -> None:
    stage = timed_stage
    stage.model.answer(*[case("B-018").answer()] * 4)
    accepted = await stage.service.accept("go", session_key="s", model=MODEL)
    tries = 1
    async for event in stage.service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=accepted.run_id, after_seq=0)):
        if event.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_RETRY:
            tries += 1
            await stage.clock.advance(event.lifecycle.delay.ToNanoseconds() / 1e9)
    assert len(stage.model.requests) == tries == 4
    observed = await observe(stage.service, accepted.run_id)
    assert observed.run.state == run_pb2.RUN_STATE_FAILED
    assert observed.terminal.phase == event_pb2.LIFECYCLE_PHASE_ERROR
    assert observed.terminal.error.reason == "PROVIDER_UNAVAILABLE"
    assert observed.terminal.error.provider == "native"
    await check_idle(stage.service)


async def test_b_019_thoughts_go_back_byte_for_byte_also_after_a_restart(tmp_path: Path, model: ModelServer) -> None:
    home = tmp_path / "home"
    async with stage_speaking("anthropic", home, model) as stage:
        observed = await play_native(stage, case("B-019").answer(), says("ok"))
        assert observed.run.state == run_pb2.RUN_STATE_SUCCEEDED
        assert stage.rec.seen == [{}]
        assert stage.rec.call_ids == ["tu1"]
        assert (observed.text, observed.payloads) == ("ok", ["ok"])
        assert "b3BhcXVl" not in str(observed.events)
        first_answer = [*THOUGHTS, {"type": "tool_use", "id": "tu1", "name": "rec", "input": {}}]
        asked, answered = turns(model.requests[-1])[1:]
        assert asked == {"role": "assistant", "content": first_answer}
        assert answered["content"] == [{"type": "tool_result", "tool_use_id": "tu1", "content": "r1"}]

    async with stage_speaking("anthropic", home, model) as stage:
        await play_native(stage, says("ok"))
        assert turns(model.requests[-1])[1] == {"role": "assistant", "content": first_answer}

        # Another model gets no part of them.
        model.answer(says("ok"))
        accepted = await stage.service.accept("go", session_key="s", model="native/other")
        await observe(stage.service, accepted.run_id)
        assert kinds(turns(model.requests[-1])[1]) == ["tool_use"]
        body = model.requests[-1].body
        assert not [word for word in (b"step  one", b"c2ln", b"b3BhcXVl") if word in body]


async def test_b_020_a_pause_for_a_tool_of_the_service_is_an_error_and_leaves_nothing_behind(stage: Stage) -> None:
    observed = await play_native(stage, case("B-020").answer())
    assert observed.run.state == run_pb2.RUN_STATE_FAILED
    assert observed.run.error.reason == "PROVIDER_BAD_RESPONSE"
    assert "pause_turn" in observed.run.error.message
    assert len(stage.model.requests) == 1
    await check_idle(stage.service)

    again = await play_native(stage, says("whole answer"))
    assert again.payloads == ["whole answer"]
    assert [kinds(turn) for turn in turns(stage.model.requests[-1])] == [["text", "text"]]
    assert b"web_search" not in stage.model.requests[-1].body
