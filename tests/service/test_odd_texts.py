"""Half characters, deep nesting and long keys from outside end as what they are, not as a fault inside."""

import json
from pathlib import Path

import grpc
import pytest
from tests.fakes.model_answers import DONE, Answer, delta, event, failure, wire
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService, refusal_of

HALF = "\\ud83d"
DEEP = "[" * 2000 + "]" * 2000
BODY = f'{{"error":{{"message":"bad {HALF} input","type":"invalid_request_error"}}}}'.encode()


@pytest.mark.parametrize(
    ("answer", "reason", "status"),
    [
        (failure(400, BODY), "PROVIDER_REQUEST_REJECTED", 400),
        (failure(401, BODY), "PROVIDER_AUTH", 401),
        (failure(402, BODY), "PROVIDER_BILLING", 402),
        (failure(404, BODY), "PROVIDER_MODEL_NOT_FOUND", 404),
        (wire(BODY, headers={"content-type": "application/json"}), "PROVIDER_REQUEST_REJECTED", 200),
        (wire(b"data: " + BODY + b"\n\n"), "PROVIDER_REQUEST_REJECTED", 200),
    ],
    ids=["400", "401", "402", "404", "200", "in the stream"],
)
async def test_half_a_character_in_a_providers_error_keeps_its_reason(
    service: RunningService, model: ModelServer, answer: Answer, reason: str, status: int
) -> None:
    model.answer(answer)
    ended = await service.finish()
    assert (ended.error.reason, ended.error.http_status) == (reason, status)
    assert ended.error.provider == "mock"
    assert "bad \ufffd input" in ended.error.message


async def test_half_a_character_in_a_finish_reason_keeps_the_outcome_named(
    service: RunningService, model: ModelServer
) -> None:
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "HALF"}]}
    odd = b"data: " + json.dumps(chunk).replace("HALF", f"st{HALF}p").encode() + b"\n\n"
    model.answer(Answer([delta(content="said"), odd, event(id="c", choices=[]), DONE]))
    ended = await service.finish()
    assert ended.error.reason == "PROVIDER_BAD_RESPONSE"
    assert ended.payloads[0].text == "said"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (f'turns: [{{error: {{reason: PROVIDER_AUTH, message: "no {HALF}"}}}}]', "PROVIDER_AUTH"),
        (f'turns: [{{tool_calls: [{{name: "re{HALF}c", arguments: {{"k{HALF}": "v{HALF}"}}}}]}}, {{text: ok}}]', ""),
        (
            "turns: [{tool_calls: [{name: read, arguments: {d: " + "[" * 2000 + "]" * 2000 + "}}]}]",
            "PROVIDER_BAD_RESPONSE",
        ),
    ],
    ids=["error", "call", "too deep"],
)
async def test_odd_scripts_end_by_name(service: RunningService, script: str, reason: str) -> None:
    Path(service.home / "scripts" / "odd.yaml").write_text(script)
    ended = await service.finish(model="scripted/odd")
    assert ended.error.reason == reason


async def test_a_session_key_that_is_accepted_can_be_used_as_it_is_answered(service: RunningService) -> None:
    longest = "x" * (512 - len("agent:main:"))
    accepted = await service.accept("hi", session_key=longest)
    again = await service.accept("hi", session_key=accepted.session_key)
    assert again.session_id == accepted.session_id
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await service.accept("hi", session_key=longest + "x")
    assert refusal_of(refused.value).reason == "SESSION_KEY_MALFORMED"
