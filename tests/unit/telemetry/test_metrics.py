"""Measurements: their names in both conventions, and attributes that hold nothing which callers chose."""

from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from lanewayd.messages import Usage
from lanewayd.telemetry.metrics import Known, Metrics, known_stop_reason, whole_input
from lanewayd.telemetry.names import Semconv

KNOWN = Known(lanes=frozenset({"main"}), models=frozenset({"acme/large"}))
USAGE = Usage(input_tokens=10, output_tokens=4, cache_read_tokens=100, cache_write_tokens=30, reasoning_tokens=2)


class Measured:
    """Metrics and what came of them."""

    def __init__(self, semconv: Semconv = Semconv.V0_1_0) -> None:
        self._reader = InMemoryMetricReader()
        provider = MeterProvider([self._reader], shutdown_on_exit=False)
        self.metrics = Metrics(provider.get_meter("test"), semconv=semconv, known=KNOWN)

    def points(self) -> dict[str, list[tuple[dict[str, Any], float]]]:
        """Metric -> attributes and value (of a histogram its sum)."""
        data = self._reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: [(dict(point.attributes or {}), _value_of(point)) for point in metric.data.data_points]
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def _value_of(point: Any) -> float:
    return float(point.sum if hasattr(point, "sum") else point.value)


def test_lanes_that_the_settings_do_not_know_are_other() -> None:
    measured = Measured()
    for lane in ("main", "mine", "yours"):
        measured.metrics.lane_queued(lane, "normal", 1)
    assert sorted(value for _, value in measured.points()["laneway.lane.queued"]) == [1, 2]
    assert {attributes["laneway.lane"] for attributes, _ in measured.points()["laneway.lane.queued"]} == {
        "main",
        "other",
    }


@pytest.mark.parametrize("reason", ["stop", "length", "rpc", "reset", "deleted", "PROVIDER_AUTH", "RUN_DEADLINE"])
def test_known_stop_reasons_stay(reason: str) -> None:
    assert known_stop_reason(reason) == reason


@pytest.mark.parametrize("reason", ["", "because you said hello", "user@example.test", "A" * 99, "stop\n"])
def test_other_stop_reasons_are_other(reason: str) -> None:
    assert known_stop_reason(reason) == "other"


def test_input_counts_what_came_from_caches() -> None:
    assert whole_input(USAGE) == 140


def test_tokens_of_the_current_conventions_are_counters_and_histograms() -> None:
    measured = Measured()
    attributes = measured.metrics.model_called("acme", "large", 1.5)
    measured.metrics.tokens_used(attributes, USAGE)
    measured.metrics.tokens_used(attributes, Usage(unavailable=True))
    points = measured.points()
    start = "gen_ai.client.inference"
    values = {name: value for name, [(_, value)] in points.items()}
    assert values == {
        f"{start}.duration": 1.5,
        f"{start}.usage.input_tokens": 140,
        f"{start}.usage.output_tokens": 4,
        f"{start}.usage.cache_read.input_tokens": 100,
        f"{start}.usage.cache_write.input_tokens": 30,
        f"{start}.usage.reasoning.output_tokens": 2,
        f"{start}.operation.input_tokens": 140,
        f"{start}.operation.output_tokens": 4,
    }
    assert points[f"{start}.duration"][0][0] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "acme",
        "gen_ai.request.model": "large",
    }


def test_tokens_of_the_older_conventions_are_one_histogram() -> None:
    measured = Measured(Semconv.V1_41)
    attributes = measured.metrics.model_called("gemini", "my own model", 1.5, error_type="PROVIDER_AUTH")
    measured.metrics.tokens_used(attributes, USAGE)
    measured.metrics.chunks_received(attributes, 0.2, 0.01)
    measured.metrics.tool_called("rec", 1.0)
    measured.metrics.agent_invoked("main", 1.0, model_calls=1, tool_calls=1)
    points = measured.points()
    assert set(points) == {
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.operation.time_per_output_chunk",
        "gen_ai.client.token.usage",
    }
    by_type = {attributes["gen_ai.token.type"]: value for attributes, value in points["gen_ai.client.token.usage"]}
    assert by_type == {"input": 140, "output": 4}
    assert points["gen_ai.client.operation.duration"][0][0] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "other",
        "error.type": "PROVIDER_AUTH",
    }


def test_all_measurements_have_a_function_and_work_when_off() -> None:
    for metrics in (Metrics.off(), Measured().metrics):
        metrics.lane_active("main", "normal", -1)
        metrics.lane_waited("main", "normal", 172_800)
        metrics.run_accepted("main", "normal")
        metrics.run_ended("succeeded", "stop")
        metrics.run_recovered()
        metrics.subscribers(1)
        metrics.subscriber_lag(-1)
        metrics.events_appended(0)
        metrics.group_committed(3, 0.01)
        metrics.loop_lag(0.001)
        metrics.call_answered("laneway.v1.AgentService/Agent", "OK", 0.1)
        metrics.tokens_used(metrics.model_called("acme", "large", 1.0), USAGE)
        metrics.tool_called("rec", 0.1, error_type="error")
        metrics.agent_invoked("main", 0.1, model_calls=1, tool_calls=0, error_type="MAX_TURNS")
