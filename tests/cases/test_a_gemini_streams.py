"""Cases of group a in Gemini's own language, over real HTTP."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.cases.case_files import case
from tests.cases.observing import Observed, check_idle, observe, strict_json
from tests.cases.speaking import stage_speaking
from tests.cases.stage import Stage
from tests.fakes.languages import LANGUAGES
from tests.fakes.model_answers import Answer
from tests.fakes.model_server import ModelServer

from laneway.v1 import event_pb2, run_pb2

MODEL = "native/gemini-3.8-flash"
SAYS = LANGUAGES["gemini"].text


@pytest.fixture
async def stage(tmp_path: Path, model: ModelServer) -> AsyncGenerator[Stage, None]:
    async with stage_speaking("gemini", tmp_path / "home", model) as speaking:
        yield speaking


async def play(stage: Stage, *answers: Answer) -> Observed:
    """One run against these answers; checks what the service was sent."""
    stage.model.answer(*answers)
    accepted = await stage.service.accept("go", session_key="s", model=MODEL)
    observed = await observe(stage.service, accepted.run_id)
    for request in stage.model.requests:
        assert request.path == "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
        check_turns(strict_json(request.body)["contents"])
    return observed


def check_turns(contents: list[dict[str, Any]]) -> None:
    """As the service checks them: turns alternate, the user's is first, each call has its response right behind."""
    assert [content["role"] for content in contents[::2]] == ["user"] * len(contents[::2])
    assert [content["role"] for content in contents[1::2]] == ["model"] * len(contents[1::2])
    for content, following in zip(contents, [*contents[1:], None], strict=True):
        assert content["parts"]
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        if calls:
            assert all(call["name"] for call in calls)
            assert following is not None
            answered = [part["functionResponse"] for part in following["parts"][: len(calls)]]
            assert [each["id"] for each in answered] == [call["id"] for call in calls]


def check_calls(stage: Stage, observed: Observed, *expected: dict[str, Any]) -> None:
    """`rec` ran once per expected arguments; transcript and events name the same calls by ids of their own."""
    ids = stage.rec.call_ids
    assert stage.rec.seen == list(expected)
    assert all(ids)
    assert len(set(ids)) == len(expected)
    assert [call.call_id for call in observed.calls] == ids
    assert [result.call_id for result in observed.tool_results] == ids
    started = observed.tools(event_pb2.TOOL_PHASE_START)
    assert [(tool.call_id, tool.name) for tool in started] == [(call_id, "rec") for call_id in ids]


@pytest.mark.parametrize("with_call", [False, True])
async def test_b_022_a_malformed_call_fails_the_run_with_that_reason(stage: Stage, with_call: bool) -> None:
    call = '{"thoughtSignature":"c2ln"},{"functionCall":{"name":"rec","args":{"a":1}}}'
    replaced = [('{"thoughtSignature":"c2ln"}', call)] if with_call else []
    observed = await play(stage, case("B-022").answer(*replaced))
    assert observed.run.state == run_pb2.RUN_STATE_FAILED
    assert observed.run.error.reason == "PROVIDER_BAD_RESPONSE"
    assert "MALFORMED_FUNCTION_CALL" in observed.run.error.message
    assert "default_api.rec(" in observed.run.error.message
    assert observed.terminal.phase == event_pb2.LIFECYCLE_PHASE_ERROR
    assert stage.rec.calls == []
    assert observed.calls == []
    assert observed.text == ""
    assert len(stage.model.requests) == 1
    await check_idle(stage.service)

    # The next message finds a session that is not spoilt.
    again = await play(stage, SAYS("ok"))
    assert again.payloads == ["ok"]
    assert b"functionCall" not in stage.model.requests[-1].body


async def test_b_023_parallel_calls_stay_apart_and_the_signature_goes_back_with_the_first(stage: Stage) -> None:
    observed = await play(stage, case("B-023").answer(), SAYS("ok"))
    assert observed.run.state == run_pb2.RUN_STATE_SUCCEEDED
    assert observed.payloads == ["ok"]
    check_calls(stage, observed, {"p": "*a*"}, {"p": "*b*"}, {"p": "*b*"})

    _, asked, answered = strict_json(stage.model.requests[1].body)["contents"]
    ids = [part["functionCall"].pop("id") for part in asked["parts"]]
    assert asked == {
        "role": "model",
        "parts": [
            {"functionCall": {"name": "rec", "args": {"p": "*a*"}}, "thoughtSignature": "c2lnQQ=="},
            {"functionCall": {"name": "rec", "args": {"p": "*b*"}}},
            {"functionCall": {"name": "rec", "args": {"p": "*b*"}}},
        ],
    }
    assert answered == {
        "role": "user",
        "parts": [
            {"functionResponse": {"id": call_id, "name": "rec", "response": {"output": f"r{number}"}}}
            for number, call_id in enumerate(ids, 1)
        ],
    }
    usage = observed.answers[0].usage
    assert (usage.input_tokens, usage.output_tokens, usage.unavailable) == (5, 9, False)

    # The signature is in the stored transcript: the next run sends it too.
    await play(stage, SAYS("ok"))
    later = strict_json(stage.model.requests[-1].body)["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in later] == ["c2lnQQ==", None, None]


async def test_b_024_arguments_in_a_part_without_a_name_complete_the_call_before_it(stage: Stage) -> None:
    observed = await play(stage, case("B-024").answer(), SAYS("ok"))
    assert observed.run.state == run_pb2.RUN_STATE_SUCCEEDED
    assert observed.payloads == ["ok"]
    check_calls(stage, observed, {"path": "docs"})
    assert [call.name for call in observed.calls] == ["rec"]
    (part,) = strict_json(stage.model.requests[1].body)["contents"][1]["parts"]
    assert (part["functionCall"]["name"], part["functionCall"]["args"]) == ("rec", {"path": "docs"})
