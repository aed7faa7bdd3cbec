"""What is exported when: by the standard variables and the settings; and how everything is closed in time."""

import asyncio
import logging
import threading
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.trace import NoOpTracer

from lanewayd.telemetry import setup
from lanewayd.telemetry.loop_lag import LoopLag
from lanewayd.telemetry.setup import Pipeline, TelemetryOptions, build_pipeline, set_up_telemetry
from lanewayd.telemetry.traces import Telemetry

ENDPOINT = "http://127.0.0.1:1"


def options(**fields: Any) -> TelemetryOptions:
    return TelemetryOptions(version="1", instance_id="i", **fields)


def exporting(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> set[str]:
    """Signals that would be exported over OTLP in this environment."""
    asked: set[str] = set()

    def build(_options: TelemetryOptions, processors: list[object], readers: list[object]) -> Pipeline:
        asked.update(["traces"] if processors else [], ["metrics"] if readers else [])
        return Pipeline(Telemetry.off())

    monkeypatch.setattr(setup, "_otlp_spans", lambda _environ: object())
    monkeypatch.setattr(setup, "_otlp_metrics", lambda _environ: object())
    monkeypatch.setattr(setup, "build_pipeline", build)
    set_up_telemetry(options(), environ)
    return asked


@pytest.mark.parametrize(
    ("environ", "signals"),
    [
        ({}, set()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT}, {"traces", "metrics"}),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, set()),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": ENDPOINT}, {"traces"}),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": ENDPOINT}, {"metrics"}),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, {"traces"}),
        ({"OTEL_METRICS_EXPORTER": " OTLP , none"}, {"metrics"}),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT, "OTEL_METRICS_EXPORTER": "none"}, {"traces"}),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT, "OTEL_TRACES_EXPORTER": "zipkin"}, {"metrics"}),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, {"traces", "metrics"}),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, set()),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT,
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
            },
            {"traces"},
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT, "OTEL_SDK_DISABLED": "True"}, set()),
    ],
)
def test_the_standard_variables_say_what_is_exported(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], signals: set[str]
) -> None:
    assert exporting(monkeypatch, environ) == signals


def test_what_cannot_be_done_is_said_without_quoting_the_environment(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://canary:1",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "canary",
        "OTEL_METRICS_EXPORTER": "canary",
    }
    exporting(monkeypatch, environ)
    assert [record.message for record in caplog.records] == [
        "telemetry is sent over OTLP with gRPC only; nothing is sent",
        "exporter not available",
    ]
    assert "canary" not in caplog.text + str([vars(record) for record in caplog.records])


def test_variables_that_cannot_be_used_are_refused_without_quoting_them(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "canary"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="traces") as caught:
        set_up_telemetry(options(), variables)
    assert "canary" not in str(caught.value)


async def test_nothing_asked_is_nothing_told() -> None:
    pipeline = set_up_telemetry(options(), {})
    assert isinstance(pipeline.telemetry.tracer, NoOpTracer)
    pipeline.start()
    await pipeline.close()


async def test_metrics_alone_leave_spans_off_and_measure_the_loop() -> None:
    reader = InMemoryMetricReader()
    pipeline = build_pipeline(options(), [], [reader])
    assert isinstance(pipeline.telemetry.tracer, NoOpTracer)
    pipeline.start()
    pipeline.telemetry.metrics.run_recovered()
    assert reader.get_metrics_data() is not None
    await pipeline.close()
    await pipeline.close()


async def test_a_closer_that_hangs_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(setup, "SHUTDOWN_LIMIT_S", 0.05)
    release, closed = threading.Event(), threading.Event()
    pipeline = Pipeline(Telemetry.off(), closing=[release.wait, closed.set])
    await pipeline.close()
    assert closed.is_set()
    assert "telemetry left behind" in [record.message for record in caplog.records]
    release.set()


async def test_a_closer_that_fails_does_not_keep_the_others(caplog: pytest.LogCaptureFixture) -> None:
    closed = threading.Event()

    def fail() -> None:
        raise OSError("gone")

    await Pipeline(Telemetry.off(), closing=[fail, closed.set]).close()
    assert closed.is_set()
    assert [record.message for record in caplog.records] == ["telemetry not closed"]


async def test_the_lag_of_the_loop_is_measured_until_stopped() -> None:
    lags: asyncio.Queue[float] = asyncio.Queue()
    lag = LoopLag(lags.put_nowait, interval_s=0.001)
    lag.start()
    assert await lags.get() >= 0
    assert await lags.get() >= 0
    lag.stop()
    lag.stop()
