"""What a collector receives from real server processes: names of both conventions, parents and links over restarts."""

import asyncio

import pytest
from tests.fakes.model_answers import Answer, calls_answer, failure, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.otlp_receiver import OtlpReceiver, plain
from tests.telemetry.conftest import MakeServer

from laneway.v1 import agent_pb2

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
UNDER_CALLER = (("traceparent", f"00-{TRACE}-{PARENT}-01"),)
CALL_METRICS = {
    "0.1.0": {
        "gen_ai.client.inference.duration",
        "gen_ai.client.inference.time_to_first_chunk",
        "gen_ai.client.inference.time_per_output_chunk",
        "gen_ai.client.inference.usage.input_tokens",
        "gen_ai.client.inference.usage.output_tokens",
        "gen_ai.client.inference.operation.input_tokens",
        "gen_ai.client.inference.operation.output_tokens",
        "gen_ai.invoke_agent.duration",
        "gen_ai.invoke_agent.inference_calls",
        "gen_ai.invoke_agent.tool_calls",
        "gen_ai.execute_tool.duration",
    },
    "1.41": {
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.operation.time_per_output_chunk",
        "gen_ai.client.token.usage",
    },
}
OWN_METRICS = {
    "laneway.lane.queued",
    "laneway.lane.active",
    "laneway.lane.wait_seconds",
    "laneway.runs.accepted",
    "laneway.runs.ended",
    "laneway.events.appended",
    "laneway.store.commit_seconds",
    "laneway.store.batch_rows",
    "rpc.server.call.duration",
}
SCHEMA_URLS = {
    "0.1.0": "https://opentelemetry.io/schemas/gen-ai/0.1.0",
    "1.41": "https://opentelemetry.io/schemas/1.41.0",
}


def request(**fields: object) -> agent_pb2.AgentRequest:
    return agent_pb2.AgentRequest(message="hello", model="mock/any", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("semconv", ["0.1.0", "1.41"])
async def test_a_run_is_exported_with_the_names_of_the_chosen_conventions(
    make_server: MakeServer, model: ModelServer, receiver: OtlpReceiver, semconv: str
) -> None:
    server = make_server(
        toml=f'[telemetry]\nsemconv = "{semconv}"\n',
        variables={"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test"},
    )
    await server.start()
    model.answer(calls_answer(("ledger", {"token": "t1"})), text_answer("a", "b", "c"))
    run_id = (await server.agent.Agent(request(), metadata=UNDER_CALLER)).run_id
    await server.wait(run_id)
    await receiver.until(lambda: len(receiver.spans) == 4)
    names = [span.name for span in sorted(receiver.spans, key=lambda span: span.span.start_time_unix_nano)]
    assert names == ["invoke_agent main", "chat any", "execute_tool ledger", "chat any"]
    (run,) = receiver.named("invoke_agent main")
    assert (run.trace_id, run.parent_id) == (TRACE, PARENT)
    assert all(span.parent_id == run.span_id and span.trace_id == TRACE for span in receiver.spans if span is not run)
    assert {span.schema_url for span in receiver.spans} == {SCHEMA_URLS[semconv]}
    assert run.resource["service.name"] == "laneway"
    assert run.resource["deployment.environment.name"] == "test"
    assert all(span.attributes["laneway.run_id"] == run_id for span in receiver.spans)
    wanted = CALL_METRICS[semconv] | OWN_METRICS
    await receiver.until(lambda: wanted <= set(receiver.metrics))
    others = CALL_METRICS["1.41" if semconv == "0.1.0" else "0.1.0"]
    assert not others & set(receiver.metrics)
    assert receiver.metric_schema_urls == {SCHEMA_URLS[semconv]}


async def test_the_buckets_of_runs_reach_48_hours(
    make_server: MakeServer, model: ModelServer, receiver: OtlpReceiver
) -> None:
    server = make_server()
    await server.start()
    await server.wait((await server.accept()).run_id)
    await receiver.until(lambda: "gen_ai.invoke_agent.duration" in receiver.metrics)
    for name in ("gen_ai.invoke_agent.duration", "laneway.lane.wait_seconds"):
        assert receiver.metrics[name].histogram.data_points[0].explicit_bounds[-1] == 48 * 3600


async def test_after_a_kill_the_run_goes_on_in_a_span_of_the_callers_trace_linked_to_the_one_that_was_lost(
    make_server: MakeServer, model: ModelServer, receiver: OtlpReceiver
) -> None:
    server = make_server()
    await server.start()
    model.answer(calls_answer(("ledger", {"token": "t1"})), Answer(before=asyncio.Event()), text_answer("done"))
    run_id = (await server.agent.Agent(request(), metadata=UNDER_CALLER)).run_id
    await model.received(2)
    # What has ended is out: the first model call and the tool call, under a span that will never come.
    await receiver.until(lambda: len(receiver.spans) == 2)
    await server.restart()
    await server.wait(run_id)
    await receiver.until(lambda: bool(receiver.named("invoke_agent main")))
    (run,) = receiver.named("invoke_agent main")
    assert (run.trace_id, run.parent_id) == (TRACE, PARENT)
    before_kill = receiver.spans[0].parent_id
    assert before_kill != run.span_id
    assert run.links == {"caller": PARENT, "previous_attempt": before_kill}
    assert run.attributes["laneway.run.attempt"] == 2
    assert [span.parent_id for span in receiver.named("chat any")] == [before_kill, run.span_id]
    assert "laneway.queue_wait" not in [event.name for event in run.span.events]
    await receiver.until(lambda: "laneway.runs.recovered" in receiver.metrics)


async def test_a_run_without_caller_keeps_its_trace_over_a_kill(
    make_server: MakeServer, model: ModelServer, receiver: OtlpReceiver
) -> None:
    server = make_server()
    await server.start()
    model.answer(calls_answer(("ledger", {"token": "t1"})), Answer(before=asyncio.Event()), text_answer("done"))
    run_id = (await server.accept()).run_id
    await receiver.until(lambda: len(receiver.spans) == 2)
    await server.restart()
    await server.wait(run_id)
    await receiver.until(lambda: bool(receiver.named("invoke_agent main")))
    (run,) = receiver.named("invoke_agent main")
    lost = receiver.spans[0]
    assert (run.trace_id, run.parent_id) == (lost.trace_id, "")
    assert run.links == {"previous_attempt": lost.parent_id}


async def test_a_queued_run_keeps_its_caller_over_a_kill_and_tells_how_long_it_waited(
    make_server: MakeServer, model: ModelServer, receiver: OtlpReceiver
) -> None:
    server = make_server()
    await server.start()
    model.answer(Answer(before=asyncio.Event()))
    await server.accept(session_key="agent:main:talk")
    await model.received(1)
    queued = (await server.agent.Agent(request(session_key="agent:main:talk"), metadata=UNDER_CALLER)).run_id
    await server.restart()
    await server.wait(queued)
    await receiver.until(lambda: len(receiver.named("invoke_agent main")) == 2)
    (run,) = [span for span in receiver.named("invoke_agent main") if span.attributes["laneway.run_id"] == queued]
    assert (run.trace_id, run.parent_id, run.links) == (TRACE, PARENT, {})
    (waited,) = [plain(event.attributes) for event in run.span.events if event.name == "laneway.queue_wait"]
    assert waited["laneway.queue_wait.seconds"] > 0


async def test_each_try_of_a_model_call_is_a_span_of_its_own(
    make_server: MakeServer, model: ModelServer, receiver: OtlpReceiver
) -> None:
    server = make_server()
    await server.start()
    model.answer(failure(503), text_answer("ok"))
    await server.wait((await server.agent.Agent(request(), metadata=UNDER_CALLER)).run_id)
    await receiver.until(lambda: len(receiver.spans) == 3)
    (run,) = receiver.named("invoke_agent main")
    failed, succeeded = receiver.named("chat any")
    assert failed.attributes["error.type"] == "PROVIDER_UNAVAILABLE"
    assert (failed.parent_id, succeeded.parent_id) == (run.span_id, run.span_id)
    assert "laneway.retry" in [event.name for event in run.span.events]


async def test_a_caller_that_does_not_sample_is_obeyed(
    make_server: MakeServer, model: ModelServer, receiver: OtlpReceiver
) -> None:
    server = make_server()
    await server.start()
    not_sampled = (("traceparent", f"00-{TRACE}-{PARENT}-00"),)
    await server.wait((await server.agent.Agent(request(), metadata=not_sampled)).run_id)
    await server.wait((await server.accept()).run_id)
    await receiver.until(lambda: len(receiver.spans) == 2)
    assert TRACE not in {span.trace_id for span in receiver.spans}
