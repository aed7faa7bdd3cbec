"""Cases of group h: messages and errors that are large, and text that is no UTF-8."""

import asyncio
from pathlib import Path

import grpc
import pytest
from tests.cases.observing import check_conversations, observe, strict_json, whole_text
from tests.cases.refusals import refusal
from tests.fakes.model_answers import DONE, Answer, calls_answer, delta
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.service import RunningService, refusal_of, running_service

from laneway.v1 import event_pb2, run_pb2
from lanewayd.tools.interface import ToolResult


async def test_b_078_what_is_large_comes_in_pieces_or_capped(tmp_path: Path, model: ModelServer) -> None:
    """The client has gRPC's default limit of 4 MiB."""
    tool = RecordingTool("rec", result=ToolResult("r" * 6 * 1024 * 1024))
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        reply = "\u20ac23456789abcde" * (5 * 1024 * 1024 // 16)
        size = len(reply.encode())
        model.answer(calls_answer(("rec", {})))
        model.answer(Answer([delta(content=reply[at : at + 9999]) for at in range(0, len(reply), 9999)] + [DONE]))
        accepted = await service.accept("go", session_key="s")
        watching = asyncio.ensure_future(service.events(accepted.run_id))
        observed = await observe(service, accepted.run_id)
        events = await watching
        assert events == observed.events
        assert max(event.ByteSize() for event in events) < 1024 * 1024
        assert observed.text == reply
        message = observed.of_kind("message")[-1].message
        (payload,) = observed.waited.payloads
        for cut in (message, payload):
            assert cut.truncated
            assert cut.total_bytes == size
            assert reply.startswith(cut.text)
            assert len(cut.text) > 100_000
        assert observed.entries[-1].truncated
        assert await whole_text(service, "s", message.entry_id) == reply
        (result,) = observed.tools(event_pb2.TOOL_PHASE_RESULT)
        assert "characters more" in result.result.text or "characters left out" in result.result.text
        assert "characters left out" in observed.tool_results[0].content[0].text
        refused = await refusal(service.accept("m" * 6 * 1024 * 1024))
        assert (refused.status, refused.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "MESSAGE_TOO_LONG")
        assert "1,048,576 bytes" in refused.text
        assert (await service.finish("go on", session_key="other")).state == run_pb2.RUN_STATE_SUCCEEDED


LARGE = ("\u00fc\u20ac\U0001f600" * 11_400, "%\n" * 40_000)
LARGE_FIELDS = ("model", "agent_id", "session_key", "session_id", "idempotency_key", "lane")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((field, value) for field in LARGE_FIELDS for value in LARGE),
        ("model", "nobody/" + "\u20ac" * 160),
        ("model", "%" * 500),
    ],
    ids=lambda value: value[:12] if value.isascii() and value.isprintable() else "other",
)
async def test_b_079_an_error_that_quotes_a_large_value_keeps_its_code(
    service: RunningService, field: str, value: str
) -> None:
    """The case's two values, and two that a limit lets pass."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await service.accept("m", **{field: value})
    refused = refusal_of(caught.value)
    assert refused.status is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.reason
    sent = sum(1 if 0x20 <= byte <= 0x7E and byte != 0x25 else 3 for byte in refused.text.encode())
    assert 0 < sent <= 1000
    assert "Traceback" not in refused.text
    assert ".py" not in refused.text
    assert "\ufffd" not in refused.text
    assert (await service.finish("m")).state == run_pb2.RUN_STATE_SUCCEEDED


async def test_b_080_a_lone_surrogate_never_breaks_an_event(tmp_path: Path, model: ModelServer) -> None:
    """In a model's text and reasoning, a tool's result, error and exception, and a file name."""
    spoilt, mended = "x\udc80y", "x\ufffdy"
    tools = [
        RecordingTool("result", result=ToolResult(spoilt)),
        RecordingTool("error", result=ToolResult(spoilt, is_error=True)),
        RecordingTool("raises", result=ValueError(spoilt)),
    ]
    async with running_service(tmp_path / "home", model=model, tools=tools) as service:
        calls = calls_answer(
            *((tool.spec.name, {"given": spoilt}) for tool in tools),
            ("read", {"path": spoilt}),
            ("exec", {"command": "touch $'x\\x80y' && ls"}),
        )
        # json.dumps leaves a lone surrogate as it is with ensure_ascii off, so the text goes as an escape.
        text = b'data: {"choices":[{"index":0,"delta":{"content":"x\\udc80y","reasoning_content":"x\\udc80y"}}]}\n\n'
        model.answer(Answer([text, *calls.steps]))
        accepted = await service.accept("go", session_key="s")
        watching = [asyncio.ensure_future(service.events(accepted.run_id)) for _ in range(2)]
        observed = await observe(service, accepted.run_id)
        assert observed.run.state == run_pb2.RUN_STATE_SUCCEEDED
        for watched in watching:
            assert await watched == observed.events
        assert observed.text == mended + "ok"
        assert observed.reasoning == mended
        results = [result.content[0].text for result in observed.tool_results]
        assert results[:3] == [mended, mended, f"ValueError: {mended}"]
        assert mended in results[3]
        assert mended in results[4]
        assert [tool.result.text for tool in observed.tools(event_pb2.TOOL_PHASE_RESULT)].count(mended) == 2
        assert [strict_json(call.arguments_json) for call in observed.calls][:3] == [{"given": mended}] * 3
        check_conversations(model)
