"""Cases of group a in OpenAI's language of responses, over real HTTP, and reasoning that goes back encrypted."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.cases.case_files import case
from tests.cases.observing import Observed, strict_json
from tests.cases.speaking import play_native, stage_speaking
from tests.cases.stage import Stage
from tests.fakes.languages import LANGUAGES
from tests.fakes.model_answers import Answer, event
from tests.fakes.model_server import ModelServer, RecordedRequest

from laneway.v1 import event_pb2, run_pb2

says = LANGUAGES["openai_responses"].text


@pytest.fixture
async def stage(tmp_path: Path, model: ModelServer) -> AsyncGenerator[Stage, None]:
    async with stage_speaking("openai_responses", tmp_path / "home", model) as speaking:
        yield speaking


def sent(request: RecordedRequest) -> list[dict[str, Any]]:
    """The items of a request, after the checks of a strict service: each output joins the call it belongs to."""
    body = strict_json(request.body)
    assert (body["stream"], body["store"]) == (True, False)
    items: list[dict[str, Any]] = body["input"]
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert [item["call_id"] for item in items if item.get("type") == "function_call_output"] == calls
    return items


def check_ended_ok(observed: Observed) -> None:
    assert observed.run.state == run_pb2.RUN_STATE_SUCCEEDED
    assert observed.payloads == ["ok"]


@pytest.mark.parametrize("has_event_lines", [False, True])
async def test_b_021_a_call_that_is_described_twice_runs_once(stage: Stage, has_event_lines: bool) -> None:
    events = case("B-021").body().split(b"\n\n")
    # A misleading line: what an event is stands in its JSON.
    lines = [b"event: message\n" + each for each in events if each.strip()] if has_event_lines else events
    observed = await play_native(stage, Answer([b"\n\n".join(lines) + b"\n\n"]), says("ok"))
    check_ended_ok(observed)
    assert stage.rec.seen == [{"q": "w"}]
    assert stage.rec.call_ids == ["call_3"]
    assert [tool.call_id for tool in observed.tools(event_pb2.TOOL_PHASE_START)] == ["call_3"]
    assert [request.path for request in stage.model.requests] == ["/responses"] * 2
    asked, result = sent(stage.model.requests[1])[-2:]
    assert asked == {"type": "function_call", "call_id": "call_3", "name": "rec", "arguments": '{"q":"w"}'}
    assert result == {"type": "function_call_output", "call_id": "call_3", "output": "r1"}


async def test_encrypted_reasoning_goes_back_in_front_of_its_call_also_in_the_next_run(stage: Stage) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "b3BhcXVl"}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "rec", "arguments": "{}"}
    answer = Answer(
        [
            event(type="response.output_item.done", output_index=0, item=thought),
            event(type="response.output_item.done", output_index=1, item={**call, "status": "completed"}),
            event(type="response.completed", response={"status": "completed", "output": []}),
        ]
    )
    check_ended_ok(await play_native(stage, answer, says("ok")))
    check_ended_ok(await play_native(stage, says("ok")))
    for request in stage.model.requests[1:]:
        assert sent(request)[1:3] == [thought, call]
    assert "b3BhcXVl" not in json.dumps([str(entry) for entry in (await play_native(stage, says("ok"))).entries])
