"""How the command line opens gRPC channels."""

import grpc

_CHANNEL_OPTIONS = (
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 200),
)


def open_channel(address: str) -> grpc.aio.Channel:
    """An unencrypted channel; a proxy of the environment is not used for this machine's own addresses."""
    is_local = address.startswith(("unix:", "127.", "localhost:", "[::1]:"))
    options = (*_CHANNEL_OPTIONS, ("grpc.enable_http_proxy", 0)) if is_local else _CHANNEL_OPTIONS
    return grpc.aio.insecure_channel(address, options=options)


async def becomes_ready(channel: grpc.aio.Channel) -> bool:
    """True once connected, False after the first failed attempt."""
    state = channel.get_state(try_to_connect=True)
    while state not in (grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.TRANSIENT_FAILURE):
        await channel.wait_for_state_change(state)
        state = channel.get_state(try_to_connect=True)
    return state is grpc.ChannelConnectivity.READY
