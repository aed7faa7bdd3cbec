"""Telemetry as the settings ask for it: what it may name, where it is served, how content looks in it."""

from collections.abc import Callable
from urllib.parse import urlsplit

from lanewayd.settings.models import ProviderSettings
from lanewayd.settings.schema import Settings
from lanewayd.telemetry.content import Content
from lanewayd.telemetry.metrics import Known
from lanewayd.telemetry.names import Semconv
from lanewayd.telemetry.setup import TelemetryOptions
from lanewayd.telemetry.traces import Place
from lanewayd.tools.redaction import Redactor
from lanewayd.wiring.model_services import ModelServices

LOOPBACK = "127.0.0.1"


def telemetry_options(
    settings: Settings,
    models: ModelServices,
    *,
    version: str,
    instance_id: str,
    monotonic: Callable[[], float],
) -> TelemetryOptions:
    """What lanewayd.telemetry is told."""
    telemetry, redactor = settings.telemetry, Redactor(models.secrets)
    return TelemetryOptions(
        version=version,
        instance_id=instance_id,
        semconv=Semconv(telemetry.semconv),
        content=Content(redactor.shown, redactor.arguments_json) if telemetry.capture_content else None,
        prometheus_host=_host_of(settings.listen),
        prometheus_port=telemetry.prometheus_port,
        known=Known(
            lanes=frozenset(settings.lane_widths()),
            models=frozenset(listing.model for listing in models.models()),
        ),
        places={name: _place_of(provider) for name, provider in settings.models.providers.items()},
        monotonic=monotonic,
    )


def _host_of(listen: str) -> str:
    """Metrics are reached as the service is; with a socket, from this machine."""
    return LOOPBACK if listen.startswith("unix:") else listen.rpartition(":")[0].strip("[]")


def _place_of(provider: ProviderSettings) -> Place:
    url = urlsplit(provider.base_url)
    return Place(url.hostname or "", url.port or (443 if url.scheme == "https" else 80))
