"""A collector: takes spans and metrics over OTLP with gRPC, and misbehaves on request.

It serves on the test's event loop, so nothing of it runs while the test blocks the loop.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, Self

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Manner(Enum):
    """How exports are answered."""

    GOOD = "good"
    SLOW = "slow"
    """Not at all, until the caller gives up."""
    LYING = "lying"
    """With success, and the remark that everything was thrown away."""
    BUSY = "busy"
    """Try again in an hour."""
    GARBAGE = "garbage"
    """With bytes that are no answer."""


@dataclass(frozen=True)
class ReceivedSpan:
    """A span and where it came from."""

    span: Span
    schema_url: str
    resource: dict[str, Any]

    @property
    def name(self) -> str:
        return self.span.name

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes as plain values."""
        return plain(self.span.attributes)

    @property
    def trace_id(self) -> str:
        return self.span.trace_id.hex()

    @property
    def span_id(self) -> str:
        return self.span.span_id.hex()

    @property
    def parent_id(self) -> str:
        """Empty for a root."""
        return self.span.parent_span_id.hex()

    @property
    def links(self) -> dict[str, str]:
        """What is linked -> span id."""
        return {plain(link.attributes)["laneway.link"]: link.span_id.hex() for link in self.span.links}


class OtlpReceiver:
    """Serves one port of 127.0.0.1. `spans` and `metrics` are all that came; `exports` counts calls."""

    def __init__(self) -> None:
        self.manner = Manner.GOOD
        self.spans: list[ReceivedSpan] = []
        self.metrics: dict[str, Metric] = {}
        """The newest of each name."""
        self.metric_schema_urls: set[str] = set()
        self.exports = 0
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self._changed = asyncio.Event()
        self._port = 0

    async def __aenter__(self) -> Self:
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers(
            (
                _service("trace.v1.TraceService", self._export_spans),
                _service("metrics.v1.MetricsService", self._export_metrics),
            )
        )
        self._port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.stop(0)

    @property
    def endpoint(self) -> str:
        """For OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a server that exports here, often."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_METRIC_EXPORT_INTERVAL": "100",
        }

    def named(self, name: str) -> list[ReceivedSpan]:
        """The spans of a name, as they came."""
        return [span for span in self.spans if span.name == name]

    async def until(self, is_reached: Callable[[], bool]) -> None:
        """Return when what has come in is enough."""
        while not is_reached():
            self._changed.clear()
            await self._changed.wait()

    async def _export_spans(self, body: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        request = ExportTraceServiceRequest.FromString(body)
        if self.manner is Manner.GOOD:
            for resource in request.resource_spans:
                attributes = plain(resource.resource.attributes)
                for scope in resource.scope_spans:
                    self.spans += [ReceivedSpan(span, scope.schema_url, attributes) for span in scope.spans]
        answer = ExportTraceServiceResponse()
        if self.manner is Manner.LYING:
            answer.partial_success.rejected_spans = 1 << 40
            answer.partial_success.error_message = "all of it\n" * 100
        return await self._answer(body, context, answer.SerializeToString())

    async def _export_metrics(self, body: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        request = ExportMetricsServiceRequest.FromString(body)
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                self.metric_schema_urls.add(scope.schema_url)
                self.metrics |= {metric.name: metric for metric in scope.metrics}
        return await self._answer(body, context, ExportMetricsServiceResponse().SerializeToString())

    async def _answer(self, body: bytes, context: grpc.aio.ServicerContext[bytes, bytes], answer: bytes) -> bytes:
        self.exports += 1
        self.bodies.append(body)
        self.headers.append({key: str(value) for key, value in context.invocation_metadata() or ()})
        self._changed.set()
        if self.manner is Manner.SLOW:
            await asyncio.Event().wait()
        elif self.manner is Manner.BUSY:
            wait = RetryInfo(retry_delay=Duration(seconds=3600)).SerializeToString()
            context.set_trailing_metadata((("google.rpc.retryinfo-bin", wait),))
            await context.abort(grpc.StatusCode.UNAVAILABLE, "busy")
        return b"\xff\xff\xff" if self.manner is Manner.GARBAGE else answer


def _service(name: str, export: Any) -> grpc.GenericRpcHandler:
    handler: Any = grpc.unary_unary_rpc_method_handler(export)
    return grpc.method_handlers_generic_handler(f"opentelemetry.proto.collector.{name}", {"Export": handler})


def plain(attributes: Any) -> dict[str, Any]:
    """OTLP attributes as plain values."""
    pairs: list[KeyValue] = list(attributes)
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind) if kind is not None else None
