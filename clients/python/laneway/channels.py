"""How channels to a server are opened: with the settings that docs/clients.md recommends for all languages."""

from collections.abc import Sequence
from typing import Any

import grpc

KEEPALIVE_OPTIONS: tuple[tuple[str, int], ...] = (
    # A server, or a way to it, that is gone without a word is noticed after 40 s, also while nothing is asked.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.keepalive_permit_without_calls", 1),
)
CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    *KEEPALIVE_OPTIONS,
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # Despite its name the time that one attempt to connect may take: a stopped server accepts and then says nothing.
    ("grpc.min_reconnect_backoff_ms", 5_000),
)
_LOCAL = ("unix:", "unix-abstract:", "127.", "localhost:", "[::1]:")


def open_channel(
    target: str,
    *,
    credentials: grpc.ChannelCredentials | None = None,
    options: Sequence[tuple[str, Any]] = (),
) -> grpc.aio.Channel:
    """A channel to `target` in gRPC's spelling: `host:port`, `unix:/path`, `dns:///name:port`.

    Without credentials it is not encrypted. `options` win over those of this module. A proxy that the environment names
    is not used for this machine's own addresses.
    """
    chosen: dict[str, Any] = dict(CHANNEL_OPTIONS)
    if target.startswith(_LOCAL):
        chosen["grpc.enable_http_proxy"] = 0
    chosen.update(options)
    pairs = list(chosen.items())
    if credentials is None:
        return grpc.aio.insecure_channel(target, options=pairs)
    return grpc.aio.secure_channel(target, credentials, options=pairs)
