"""What a service in this process tells telemetry, kept in memory by the SDK's own exporters."""

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from lanewayd.app import Seams
from lanewayd.telemetry.setup import Pipeline, TelemetryOptions, build_pipeline


class Probe:
    """`seams` for one service. `spans` are those that have ended, in that order."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()

    def seam(self, options: TelemetryOptions, _environ: Mapping[str, str]) -> Pipeline:
        """In place of set_up_telemetry."""
        return build_pipeline(options, [SimpleSpanProcessor(self._exporter)], [self.reader])

    def seams(self, **fields: Any) -> Seams:
        """With this probe, and what else is given."""
        return Seams(telemetry=self.seam, **fields)

    @property
    def spans(self) -> list[ReadableSpan]:
        """All that have ended."""
        return list(self._exporter.get_finished_spans())

    def named(self, start: str) -> list[ReadableSpan]:
        """Those whose name begins so."""
        return [span for span in self.spans if span.name.startswith(start)]

    def points(self) -> dict[str, list[Any]]:
        """Metric name -> its points, all up to now."""
        data = self.reader.get_metrics_data()
        if not isinstance(data, MetricsData):
            return {}
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }
