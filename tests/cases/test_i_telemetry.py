"""Cases of group i: what spans, metrics and logs say of runs, and what they must not say."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode, get_current_span
from tests.fakes.fake_clock import FakeClock
from tests.fakes.log_lines import kept_log_lines
from tests.fakes.model_answers import Answer, End, calls_answer, delta, failure, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.service import RunningService, running_service, toml_for
from tests.fakes.telemetry_probe import Probe

from laneway.v1 import agent_pb2, run_pb2
from lanewayd.tools.interface import ToolContext, ToolResult

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CALLER_TRACE, CALLER_SPAN = CALLER.split("-")[1:3]


@pytest.fixture
def probe() -> Probe:
    return Probe()


@pytest.fixture
def log_lines() -> Iterator[list[str]]:
    """Every log line of the test, as the server would write it."""
    with kept_log_lines() as lines:
        yield lines


@asynccontextmanager
async def probed(
    home: Path, model: ModelServer, probe: Probe, *, tools: tuple[RecordingTool, ...] = (), toml: str = "", **seams: Any
) -> AsyncGenerator[RunningService, None]:
    """A service that tells the probe."""
    async with running_service(home, model=model, toml=toml, tools=tools, seams=probe.seams(**seams)) as service:
        yield service


async def accepted_under(service: RunningService, traceparent: str, **fields: Any) -> run_pb2.AgentResponse:
    """`Agent` with a trace context in the metadata."""
    fields.setdefault("model", "mock/any")
    request = agent_pb2.AgentRequest(message="hello", **fields)
    return await service.agent.Agent(request, metadata=(("traceparent", traceparent),))


def parent_id(span: ReadableSpan) -> str:
    """Empty for a root."""
    return f"{span.parent.span_id:016x}" if span.parent is not None else ""


def own_id(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.span_id:016x}"


def trace_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def check_once_and_nested(probe: Probe) -> None:
    """No span twice; model and tool spans under a run's span of the same trace and run."""
    ids = [own_id(span) for span in probe.spans]
    assert len(set(ids)) == len(ids)
    runs = {own_id(span): span for span in probe.named("invoke_agent")}
    for span in (*probe.named("chat"), *probe.named("execute_tool")):
        run = runs[parent_id(span)]
        assert trace_of(span) == trace_of(run)
        assert attributes_of(span)["laneway.run_id"] == attributes_of(run)["laneway.run_id"]


# --- B-083 -----------------------------------------------------------------------------------------------------------


async def test_b083_streams_that_end_early_leave_no_span_current(
    tmp_path: Path, model: ModelServer, probe: Probe, log_lines: list[str]
) -> None:
    tool = RecordingTool("rec", hold=True)
    model.answer(Answer([delta(content="one "), asyncio.Event()]), calls_answer(("rec", {})))
    async with probed(tmp_path / "home", model, probe, tools=(tool,)) as service:
        # The consumer breaks after the first event, cancels, raises, or is forgotten; another task aborts.
        first = (await accepted_under(service, CALLER)).run_id
        request = agent_pb2.SubscribeRequest(run_id=first, after_seq=0)
        async for _event in service.agent.Subscribe(request):
            break
        cancelled = service.agent.Subscribe(request)
        await cancelled.read()
        cancelled.cancel()
        with pytest.raises(ZeroDivisionError):
            await _fail_while_reading(service, first)
        await model.received(1)
        await asyncio.create_task(_abort(service, first))
        second = (await service.accept()).run_id
        await tool.asked.get()
        await _abort(service, second)
        assert not get_current_span().get_span_context().is_valid
    assert len(probe.named("invoke_agent main")) == 2
    check_once_and_nested(probe)
    assert not any("detach" in line.lower() or "different context" in line.lower() for line in log_lines)


async def _fail_while_reading(service: RunningService, run_id: str) -> None:
    async for _event in service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0)):
        _ = 1 / 0


async def _abort(service: RunningService, run_id: str) -> None:
    await service.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))


# --- B-084 -----------------------------------------------------------------------------------------------------------


async def test_b084_a_finished_run_has_its_spans_nested_under_the_callers(
    tmp_path: Path, model: ModelServer, probe: Probe
) -> None:
    model.answer(calls_answer(("rec", {"a": 1}), ("rec", {"a": 2})), text_answer("done", usage=(7, 5)))
    async with probed(tmp_path / "home", model, probe, tools=(RecordingTool("rec"),)) as service:
        run_id = (await accepted_under(service, CALLER)).run_id
        await service.wait(run_id)
    (run,) = probe.named("invoke_agent")
    assert (run.name, trace_of(run), parent_id(run)) == ("invoke_agent main", CALLER_TRACE, CALLER_SPAN)
    assert run.status.status_code is StatusCode.UNSET
    attributes = attributes_of(run)
    assert attributes["laneway.run_id"] == run_id
    assert (attributes["gen_ai.operation.name"], attributes["gen_ai.agent.name"]) == ("invoke_agent", "main")
    assert (attributes["laneway.run.state"], attributes["laneway.run.stop_reason"]) == ("succeeded", "stop")
    (waited,) = [event for event in run.events if event.name == "laneway.queue_wait"]
    assert (waited.attributes or {})["laneway.queue_wait.seconds"] >= 0  # type: ignore[operator]
    assert [span.name for span in probe.named("chat")] == ["chat any", "chat any"]
    assert [span.name for span in probe.named("execute_tool")] == ["execute_tool rec", "execute_tool rec"]
    check_once_and_nested(probe)
    last = attributes_of(probe.named("chat")[1])
    assert (last["gen_ai.usage.input_tokens"], last["gen_ai.usage.output_tokens"]) == (7, 5)
    assert last["gen_ai.response.finish_reasons"] == ("stop",)
    assert (last["server.address"], last["server.port"]) == ("127.0.0.1", model.port)
    assert last["gen_ai.response.time_to_first_chunk"] > 0


async def test_b084_failed_tries_and_the_run_that_gets_over_them_or_not(
    tmp_path: Path, model: ModelServer, probe: Probe
) -> None:
    clock = FakeClock()
    model.answer(failure(500, {"error": {"message": "canary"}}), text_answer("ok"), failure(401, {"error": "canary"}))
    async with probed(tmp_path / "home", model, probe, clock=clock) as service:
        first = (await service.accept()).run_id
        await clock.wait_for_sleepers(1)
        await clock.advance(1.0)
        await service.wait(first)
        await service.finish()
    recovered, failed = probe.named("invoke_agent")
    (retry,) = [event for event in recovered.events if event.name == "laneway.retry"]
    assert dict(retry.attributes or {}) == {
        "error.type": "PROVIDER_UNAVAILABLE",
        "laneway.run.attempt": 2,
        "laneway.retry.delay_seconds": 1.0,
    }
    tries = probe.named("chat")
    assert [attributes_of(span).get("error.type") for span in tries] == ["PROVIDER_UNAVAILABLE", None, "PROVIDER_AUTH"]
    assert [span.status.status_code for span in tries] == [StatusCode.ERROR, StatusCode.UNSET, StatusCode.ERROR]
    assert recovered.status.status_code is StatusCode.UNSET
    assert (failed.status.status_code, attributes_of(failed)["error.type"]) == (StatusCode.ERROR, "PROVIDER_AUTH")
    assert not failed.status.description
    check_once_and_nested(probe)


@pytest.mark.parametrize("where", ["model", "tool"])
async def test_b084_an_aborted_run_is_marked_and_is_no_error(
    tmp_path: Path, model: ModelServer, probe: Probe, where: str
) -> None:
    tool = RecordingTool("rec", hold=True)
    model.answer(Answer([delta(content="one "), asyncio.Event()]) if where == "model" else calls_answer(("rec", {})))
    async with probed(tmp_path / "home", model, probe, tools=(tool,)) as service:
        run_id = (await service.accept()).run_id
        await (model.received(1) if where == "model" else tool.asked.get())
        await _abort(service, run_id)
    (run,) = probe.named("invoke_agent")
    assert run.status.status_code is StatusCode.UNSET
    assert (attributes_of(run)["laneway.run.state"], attributes_of(run)["laneway.run.stop_reason"]) == (
        "cancelled",
        "rpc",
    )
    (stopped,) = probe.named("chat" if where == "model" else "execute_tool")
    assert (stopped.status.status_code, attributes_of(stopped)["laneway.cancelled"]) == (StatusCode.UNSET, True)
    assert "error.type" not in attributes_of(stopped)
    check_once_and_nested(probe)


async def test_b084_a_run_over_its_time_is_an_error_with_its_reason(
    tmp_path: Path, model: ModelServer, probe: Probe
) -> None:
    clock = FakeClock()
    model.answer(Answer(before=asyncio.Event()))
    request = agent_pb2.AgentRequest(message="hello", model="mock/any")
    request.timeout.FromSeconds(5)
    async with probed(tmp_path / "home", model, probe, clock=clock) as service:
        run_id = (await service.agent.Agent(request)).run_id
        await model.received(1)
        await clock.advance(5.0)
        await service.wait(run_id)
    (run,) = probe.named("invoke_agent")
    assert (run.status.status_code, attributes_of(run)["error.type"]) == (StatusCode.ERROR, "RUN_DEADLINE")
    assert attributes_of(run)["laneway.run.state"] == "timed_out"
    check_once_and_nested(probe)


async def test_b084_a_run_that_a_drain_cuts_goes_on_in_a_span_linked_to_the_first(
    tmp_path: Path, model: ModelServer, probe: Probe
) -> None:
    again = Probe()
    model.answer(Answer(before=asyncio.Event()))
    async with probed(tmp_path / "home", model, probe) as service:
        run_id = (await accepted_under(service, CALLER)).run_id
        await model.received(1)
    (first,) = probe.named("invoke_agent")
    assert (first.status.status_code, attributes_of(first)["laneway.run.state"]) == (StatusCode.UNSET, "handed_over")
    async with probed(tmp_path / "home", model, again) as service:
        await service.wait(run_id)
    (second,) = again.named("invoke_agent")
    assert (trace_of(second), parent_id(second)) == (CALLER_TRACE, CALLER_SPAN)
    links = {str((link.attributes or {})["laneway.link"]): link.context for link in second.links}
    assert f"{links['previous_attempt'].span_id:016x}" == own_id(first)
    assert f"{links['caller'].span_id:016x}" == CALLER_SPAN
    assert not [event for event in second.events if event.name == "laneway.queue_wait"]
    check_once_and_nested(probe)
    check_once_and_nested(again)


async def test_b084_a_run_that_another_ones_end_starts_is_not_its_child(
    tmp_path: Path, model: ModelServer, probe: Probe
) -> None:
    release = asyncio.Event()
    model.answer(Answer(text_answer("one").steps, before=release))
    async with probed(tmp_path / "home", model, probe) as service:
        first = (await accepted_under(service, CALLER, session_key="agent:main:talk")).run_id
        await model.received(1)
        second = (await service.accept(session_key="agent:main:talk")).run_id
        release.set()
        await service.wait(first)
        await service.wait(second)
    one, two = sorted(probe.named("invoke_agent"), key=lambda span: span.start_time or 0)
    assert parent_id(one) == CALLER_SPAN
    assert parent_id(two) == ""
    assert trace_of(two) != trace_of(one)
    check_once_and_nested(probe)


# --- B-085 -----------------------------------------------------------------------------------------------------------


async def test_b085_names_of_spans_hold_no_text_of_callers_or_models(
    tmp_path: Path, model: ModelServer, probe: Probe
) -> None:
    async with probed(tmp_path / "home", model, probe, tools=(RecordingTool("rec"),)) as service:
        for number in range(3):
            model.answer(calls_answer(("rec", {}), (f"made-up-{number}", {"path": "/etc/x"})), text_answer("done"))
            key = f"user{number}@example.test/../x"
            await service.finish(f"prompt {number}", session_key=key, label=f"label {number}")
    assert {span.name for span in probe.spans} == {
        "invoke_agent main",
        "chat any",
        "execute_tool rec",
        "execute_tool other",
    }


# --- B-086 -----------------------------------------------------------------------------------------------------------

KEY, IN_URL, PROMPT, ARGUMENT, RESULT = (f"canary-{letter}-5f0c77d1" for letter in "kuptr")


class ResultTool(RecordingTool):
    """Answers with the canary of results."""

    def __init__(self) -> None:
        super().__init__("rec")

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        await super().run(arguments, context)
        context.report(f"so far {RESULT}")
        return ToolResult(f"the result is {RESULT}")


async def play_canaries(home: Path, model: ModelServer, probe: Probe, *, toml: str = "") -> None:
    """A run with a tool call, one that fails with a body that quotes the key, and one whose stream is garbage."""
    key_file = home.parent / "key"
    key_file.write_text(KEY)
    settings = toml_for(model, f'api_key_file = "{key_file}"\n{toml}')
    quoting = {"error": {"message": f"bad key {KEY} at http://x/?key={IN_URL}", "code": "invalid_api_key"}}
    model.answer(
        calls_answer(("rec", {"what": ARGUMENT}), text=f"thinking of {ARGUMENT}"),
        text_answer(f"it was {RESULT}"),
        failure(401, quoting),
        Answer([f"data: {{broken {PROMPT} {KEY}\n\n".encode()], end=End.CLOSE),
    )
    async with running_service(home, toml=settings, tools=[ResultTool()], seams=probe.seams()) as service:
        for _ in range(3):
            await service.finish(f"please {PROMPT}", extra_system_prompt=f"never say {PROMPT}")


def told(probe: Probe) -> str:
    """Everything that went to spans and metrics."""
    reader = probe.reader.get_metrics_data()
    return "\n".join([*(span.to_json() for span in probe.spans), reader.to_json() if reader is not None else ""])


async def test_b086_by_default_nothing_of_contents_or_keys_is_told(
    tmp_path: Path, model: ModelServer, probe: Probe, log_lines: list[str]
) -> None:
    await play_canaries(tmp_path / "home", model, probe)
    assert len(probe.named("invoke_agent")) == 3
    everything = told(probe) + "\n".join(
        line for line in log_lines if json.loads(line)["logger"].startswith("lanewayd")
    )
    for canary in (KEY, IN_URL, PROMPT, ARGUMENT, RESULT):
        assert canary not in everything, canary
    assert log_lines


async def test_b086_with_capture_contents_are_in_spans_and_keys_are_not(
    tmp_path: Path, model: ModelServer, probe: Probe
) -> None:
    await play_canaries(tmp_path / "home", model, probe, toml="[telemetry]\ncapture_content = true\n")
    everything = told(probe)
    for canary in (PROMPT, ARGUMENT, RESULT):
        assert canary in everything, canary
    for canary in (KEY, IN_URL):
        assert canary not in everything, canary
    (called,) = probe.named("execute_tool")
    assert attributes_of(called)["gen_ai.tool.call.arguments"] == json.dumps({"what": ARGUMENT})
    assert attributes_of(called)["gen_ai.tool.call.result"] == f"the result is {RESULT}"
    asked = attributes_of(probe.named("chat")[1])
    messages = json.loads(asked["gen_ai.input.messages"])
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert PROMPT in asked["gen_ai.system_instructions"]
    assert json.loads(asked["gen_ai.output.messages"])[0]["parts"] == [{"type": "text", "content": f"it was {RESULT}"}]


async def test_b086_captured_content_has_a_limit(tmp_path: Path, model: ModelServer, probe: Probe) -> None:
    model.answer(text_answer("y" * 200_000))
    toml = "[telemetry]\ncapture_content = true\n"
    async with probed(tmp_path / "home", model, probe, toml=toml) as service:
        await service.finish("x" * 500_000)
    (asked,) = probe.named("chat")
    sizes = [len(value) for value in attributes_of(asked).values() if isinstance(value, str)]
    assert 8_000 < max(sizes) <= 32_768
