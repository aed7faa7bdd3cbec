"""Where telemetry goes: built once by app, from the settings and the standard OTEL_* variables.

Nothing is exported unless it is asked for: OTLP over gRPC when an endpoint is given or an exporter is named, metrics
also over HTTP when `telemetry.prometheus_port` is set. What exports imports heavily and is imported only then.

A collector that is dead, slow or lying costs a run nothing: spans wait in a bounded queue and are dropped when it is
full, threads of their own send them with a short timeout, and leaving takes at most SHUTDOWN_LIMIT_S.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from lanewayd.telemetry import names
from lanewayd.telemetry.content import Content
from lanewayd.telemetry.loop_lag import LoopLag
from lanewayd.telemetry.metrics import Known, Metrics
from lanewayd.telemetry.names import NAMES, Semconv
from lanewayd.telemetry.traces import Place, Telemetry

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanProcessor

logger = logging.getLogger(__name__)

Made = TypeVar("Made")

SHUTDOWN_LIMIT_S = 2.0
EXPORT_TIMEOUT_S = 3.0
"""Of one export, unless OTEL_EXPORTER_OTLP_TIMEOUT says otherwise."""


@dataclass(frozen=True, slots=True)
class TelemetryOptions:
    """What the settings say of telemetry, and what it must know of the service."""

    version: str
    instance_id: str
    semconv: Semconv = Semconv.V0_1_0
    content: Content | None = None
    prometheus_host: str = "127.0.0.1"
    prometheus_port: int | None = None
    """None: metrics are not served; 0: on any free port."""
    known: Known = field(default_factory=Known)
    places: Mapping[str, Place] = field(default_factory=dict)
    monotonic: Callable[[], float] = lambda: 0.0


class _Closable(Protocol):
    """A provider of the SDK."""

    def shutdown(self) -> None: ...


class Pipeline:
    """A service's telemetry and the way out for it. `start` on the event loop, `close` at the end."""

    def __init__(
        self,
        telemetry: Telemetry,
        *,
        closing: Sequence[Callable[[], object]] = (),
        lag: LoopLag | None = None,
        prometheus_port: int = 0,
    ) -> None:
        """`closing`: each may block; called side by side. `prometheus_port`: the one in use, 0 = none."""
        self.telemetry = telemetry
        self.prometheus_port = prometheus_port
        self._closing = closing
        self._lag = lag

    def start(self) -> None:
        """Begin to measure the running event loop."""
        if self._lag is not None:
            self._lag.start()

    async def close(self) -> None:
        """Send what waits, as far as SHUTDOWN_LIMIT_S allows. Idempotent."""
        if self._lag is not None:
            self._lag.stop()
        closing, self._closing = self._closing, ()
        if not closing:
            return
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        left = len(closing)

        def one_over() -> None:
            nonlocal left
            left -= 1
            if not left:
                over.set()

        for close in closing:
            # Daemons: a thread that hangs on a dead collector must not hold the process.
            threading.Thread(target=_close, args=(close, loop, one_over), name="laneway-telemetry", daemon=True).start()
        try:
            async with asyncio.timeout(SHUTDOWN_LIMIT_S):
                await over.wait()
        except TimeoutError:
            logger.warning("telemetry left behind", extra={"limit_s": SHUTDOWN_LIMIT_S})


def set_up_telemetry(options: TelemetryOptions, environ: Mapping[str, str]) -> Pipeline:
    """What settings and environment ask for.

    Raises OSError when the Prometheus port cannot be used, ValueError when OTEL_* variables cannot.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return Pipeline(Telemetry.off())
    processors: list[SpanProcessor] = []
    readers: list[MetricReader] = []
    if _asks_for_otlp(environ, "TRACES"):
        processors.append(_made(_otlp_spans, environ, "TRACES"))
    if _asks_for_otlp(environ, "METRICS"):
        readers.append(_made(_otlp_metrics, environ, "METRICS"))
    if options.prometheus_port is None:
        return build_pipeline(options, processors, readers)
    reader, close, port = _serve_prometheus(options.prometheus_host, options.prometheus_port)
    logger.info("metrics served", extra={"host": options.prometheus_host, "port": port})
    return build_pipeline(options, processors, [*readers, reader], closing=(close,), prometheus_port=port)


def build_pipeline(
    options: TelemetryOptions,
    processors: "Sequence[SpanProcessor]",
    readers: "Sequence[MetricReader]",
    *,
    closing: Sequence[Callable[[], object]] = (),
    prometheus_port: int = 0,
) -> Pipeline:
    """Spans to the processors, metrics to the readers; what has none is off. They are closed with the pipeline."""
    off = Telemetry.off()
    tracer, metrics, ids, lag = off.tracer, off.metrics, None, None
    providers: list[_Closable] = []
    schema_url = NAMES[options.semconv].schema_url
    if processors:
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - only when spans are asked for

        from lanewayd.telemetry.planned_ids import PlannedIdGenerator  # noqa: PLC0415 - imports the SDK

        ids = PlannedIdGenerator()
        spans = TracerProvider(resource=_resource(options), id_generator=ids, shutdown_on_exit=False)
        for processor in processors:
            spans.add_span_processor(processor)
        tracer = spans.get_tracer(names.SCOPE, options.version, schema_url=schema_url)
        providers.append(spans)
    if readers:
        from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider  # noqa: PLC0415 - only when metrics are asked for

        meters = MeterProvider(
            metric_readers=readers,
            resource=_resource(options),
            exemplar_filter=AlwaysOffExemplarFilter(),  # exemplars double the cost of each value
            shutdown_on_exit=False,
        )
        meter = meters.get_meter(names.SCOPE, options.version, schema_url=schema_url)
        metrics = Metrics(meter, semconv=options.semconv, known=options.known)
        lag = LoopLag(metrics.loop_lag)
        providers.append(meters)
    telemetry = Telemetry(
        tracer,
        metrics,
        monotonic=options.monotonic if providers else off.monotonic,
        ids=ids,
        content=options.content,
        places=options.places,
    )
    shutdowns = [provider.shutdown for provider in providers]
    return Pipeline(telemetry, closing=[*shutdowns, *closing], lag=lag, prometheus_port=prometheus_port)


def _asks_for_otlp(environ: Mapping[str, str], signal: str) -> bool:
    """Whether OTLP is asked for, and in a protocol that is spoken here; as OpenTelemetry says, else a warning."""
    exporters = [name.strip() for name in environ.get(f"OTEL_{signal}_EXPORTER", "").lower().split(",") if name.strip()]
    if unknown := sorted(set(exporters) - {"otlp", "none"}):
        logger.warning("exporter not available", extra={"signal": signal.lower(), "exporters": len(unknown)})
    endpoint = _of_signal(environ, signal, "ENDPOINT")
    if not ("otlp" in exporters or (endpoint and not exporters)):
        return False
    protocol = _of_signal(environ, signal, "PROTOCOL") or "grpc"
    if protocol != "grpc":
        logger.warning("telemetry is sent over OTLP with gRPC only; nothing is sent", extra={"signal": signal.lower()})
    return protocol == "grpc"


def _of_signal(environ: Mapping[str, str], signal: str, name: str) -> str:
    specific = environ.get(f"OTEL_EXPORTER_OTLP_{signal}_{name}", "")
    return (specific or environ.get(f"OTEL_EXPORTER_OTLP_{name}", "")).strip()


def _timeout_s(environ: Mapping[str, str], signal: str) -> float | None:
    """None: what the environment says."""
    return None if _of_signal(environ, signal, "TIMEOUT") else EXPORT_TIMEOUT_S


def _made(make: Callable[[Mapping[str, str]], Made], environ: Mapping[str, str], signal: str) -> Made:
    """What `make` makes. Raises ValueError, whatever the SDK raises; its texts may quote what the variables hold."""
    try:
        return make(environ)
    except Exception as error:
        name = type(error).__name__
        raise ValueError(
            f"the variables OTEL_EXPORTER_OTLP_*, OTEL_BSP_* and OTEL_METRIC_* cannot be used for {signal.lower()} "
            f"({name}): correct them, or set OTEL_{signal}_EXPORTER=none"
        ) from error


def _otlp_spans(environ: Mapping[str, str]) -> "SpanProcessor":
    # Queue and batch sizes: OTEL_BSP_*, read by the SDK.
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - heavy
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - heavy

    return BatchSpanProcessor(OTLPSpanExporter(timeout=_timeout_s(environ, "TRACES")))


def _otlp_metrics(environ: Mapping[str, str]) -> "MetricReader":
    # The interval: OTEL_METRIC_EXPORT_INTERVAL, read by the SDK.
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter  # noqa: PLC0415 - heavy
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415 - heavy

    return PeriodicExportingMetricReader(OTLPMetricExporter(timeout=_timeout_s(environ, "METRICS")))


def _serve_prometheus(host: str, port: int) -> "tuple[MetricReader, Callable[[], None], int]":
    """The reader, what ends its server, and the port in use. Raises OSError."""
    from opentelemetry.exporter.prometheus import PrometheusMetricReader  # noqa: PLC0415 - only when asked for
    from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415 - only when asked for

    # A registry of its own: the client library's global one has figures of the process that nobody asked for.
    registry = CollectorRegistry()
    reader = PrometheusMetricReader(registry=registry, scope_info_enabled=False)
    server, thread = start_http_server(port, host, registry)

    def close() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return reader, close, server.server_port


def _resource(options: TelemetryOptions) -> "Resource":
    """OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES, over our own name, version and instance."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415 - only when asked for

    own: dict[str, Any] = {
        "service.name": names.SCOPE,
        "service.version": options.version,
        "service.instance.id": options.instance_id,
    }
    return Resource.create(own).merge(OTELResourceDetector().detect())


def _close(close: Callable[[], object], loop: asyncio.AbstractEventLoop, over: Callable[[], None]) -> None:
    try:
        close()
    except Exception:  # the edge of an exporter's thread; nobody could do anything about it
        logger.exception("telemetry not closed")
    try:
        loop.call_soon_threadsafe(over)
    except RuntimeError:
        return  # the loop has ended: it did not wait for this
