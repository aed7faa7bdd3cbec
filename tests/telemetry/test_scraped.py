"""Metrics over HTTP, as Prometheus scrapes them; and logs that say which run and span they belong to."""

import json
import socket
from pathlib import Path

import grpc
import pytest
from tests.fakes.log_lines import kept_log_lines
from tests.fakes.model_answers import calls_answer, failure, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.server_process import ServerExited
from tests.fakes.service import running_service
from tests.telemetry.conftest import MakeServer
from tests.telemetry.scraping import metrics_port, scraped

from laneway.v1 import agent_pb2

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
QUIET = {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}


async def test_metrics_are_served_and_name_nothing_that_callers_chose(
    make_server: MakeServer, model: ModelServer
) -> None:
    toml = """
    [agents.defaults]
    model = "mock/any"
    [telemetry]
    prometheus_port = 0
    [lanes.reports]
    max_concurrent = 2
    """
    server = make_server(toml=toml, variables=QUIET)
    await server.start()
    port = metrics_port(server.log)
    model.answer(calls_answer(("ledger", {"token": "t"}), ("made-up", {})), text_answer("a", "b", usage=(7, 5)))
    await server.wait((await server.accept(lane="reports")).run_id)
    await server.wait((await server.accept(lane="my-own-lane", model="mock/my-own-model", label="my-own")).run_id)
    await server.events((await server.accept()).run_id)
    samples = await scraped(port)
    text = "\n".join(samples)
    assert "my-own" not in text
    assert "made-up" not in text
    assert "run_" not in text
    lane = 'laneway_lane="reports",laneway_priority="foreground"'
    assert samples[f"laneway_runs_accepted_total{{{lane}}}"] == 1
    assert samples[f"laneway_lane_queued{{{lane}}}"] == 0
    assert samples[f"laneway_lane_active{{{lane}}}"] == 0
    assert samples[f"laneway_lane_wait_seconds_count{{{lane}}}"] == 1
    assert samples['laneway_runs_accepted_total{laneway_lane="other",laneway_priority="foreground"}'] == 1
    assert samples['laneway_runs_ended_total{laneway_status="succeeded",laneway_stop_reason="stop"}'] == 3
    assert samples["laneway_events_appended_total"] > 10
    assert samples["laneway_subscribers"] == 0
    assert samples["laneway_subscriber_lag_events_count"] >= 1
    assert samples["laneway_store_commit_seconds_count"] == samples["laneway_store_batch_rows_count"] > 0
    chat = 'gen_ai_operation_name="chat",gen_ai_provider_name="mock",gen_ai_request_model='
    assert samples[f'gen_ai_client_inference_duration_seconds_count{{{chat}"any"}}'] == 3
    assert samples[f'gen_ai_client_inference_duration_seconds_count{{{chat}"other"}}'] == 1
    agent = 'rpc_method="laneway.v1.AgentService/Agent",rpc_status_code="OK",rpc_system_name="grpc"'
    assert samples[f"rpc_server_call_duration_seconds_count{{{agent}}}"] == 3


async def test_failures_are_counted_by_their_reasons(make_server: MakeServer, model: ModelServer) -> None:
    server = make_server(toml="[telemetry]\nprometheus_port = 0\n", variables=QUIET)
    await server.start()
    model.answer(failure(401, {"error": "no"}))
    await server.wait((await server.accept()).run_id)
    with pytest.raises(grpc.aio.AioRpcError):
        await server.wait("run_nonsense")
    samples = await scraped(metrics_port(server.log))
    assert samples['laneway_runs_ended_total{laneway_status="failed",laneway_stop_reason="PROVIDER_AUTH"}'] == 1
    refused = 'rpc_method="laneway.v1.AgentService/Wait",rpc_status_code="NOT_FOUND",rpc_system_name="grpc"'
    assert samples[f"rpc_server_call_duration_seconds_count{{{refused}}}"] == 1


async def test_a_port_that_is_taken_is_refused_with_its_name(make_server: MakeServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = make_server(toml=f"[telemetry]\nprometheus_port = {taken.getsockname()[1]}\n", variables=QUIET)
        with pytest.raises(ServerExited) as caught:
            await server.start()
    assert caught.value.exit_code == 2
    assert "`telemetry.prometheus_port`" in caught.value.log


async def test_without_a_setting_nothing_listens_and_nothing_of_the_sdk_is_imported(
    make_server: MakeServer,
) -> None:
    server = make_server(variables={**QUIET, "PYTHONPROFILEIMPORTTIME": "1"})
    await server.start()
    await server.wait((await server.accept()).run_id)
    server.terminate()
    assert await server.exited() == 0
    imported = {line.rpartition("|")[2].strip() for line in server.log.splitlines() if line.startswith("import time")}
    assert "lanewayd.telemetry.setup" in imported
    assert not [name for name in imported if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))]
    assert not [name for name in imported if name.startswith("prometheus_client")]


async def test_log_lines_of_a_run_carry_the_ids_of_run_and_span(make_server: MakeServer, model: ModelServer) -> None:
    server = make_server()
    await server.start()
    model.answer(calls_answer(("ledger", {"token": "t", "then": "raise"})), text_answer("done"))
    request = agent_pb2.AgentRequest(message="hello", model="mock/any")
    metadata = (("traceparent", f"00-{TRACE}-{PARENT}-01"),)
    run_id = (await server.agent.Agent(request, metadata=metadata)).run_id
    await server.wait(run_id)
    lines = [json.loads(line) for line in server.log.splitlines()]
    assert {"run accepted", "run started", "run ended"} <= {
        line["message"] for line in lines if line.get("run_id") == run_id
    }


async def test_what_a_tool_makes_the_loop_log_is_joined_with_its_span(tmp_path: Path, model: ModelServer) -> None:
    """In this process, because a tool that raises is needed."""
    model.answer(calls_answer(("rec", {})), text_answer("done"))
    tool = RecordingTool("rec", result=ValueError("canary"))
    with kept_log_lines() as lines:
        async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
            request = agent_pb2.AgentRequest(message="hello", model="mock/any")
            metadata = (("traceparent", f"00-{TRACE}-{PARENT}-01"),)
            run_id = (await service.agent.Agent(request, metadata=metadata)).run_id
            await service.wait(run_id)
    (raised,) = [line for line in map(json.loads, lines) if line["message"] == "tool raised"]
    assert (raised["run_id"], raised["trace_id"]) == (run_id, TRACE)
    assert raised["span_id"]
    assert not [line for line in lines if "canary" in line]
