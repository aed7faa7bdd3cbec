"""Exceptions of the HTTP libraries -> what went wrong. Pure.

The exception's own type says little: httpx-aiohttp raises `ConnectTimeout` for refused and for reset connections. The
chain of causes tells them apart.
"""

import socket
import ssl
from collections.abc import Iterator

import aiohttp
import httpx
from aiohttp.http_exceptions import LineTooLong

from lanewayd.errors import ErrorCode
from lanewayd.providers.failures import Fault, fault

# What a call through httpx can raise with either transport. aiohttp's own errors pass its transport where it has no
# translation (an answer that is no HTTP); RuntimeError: the client was closed; ValueError: a malformed URL or header.
TRANSPORT_EXCEPTIONS = (
    httpx.HTTPError,
    httpx.StreamError,
    httpx.InvalidURL,
    aiohttp.ClientError,
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
)


def fault_before_response(error: BaseException) -> Fault:
    """No response came: what kept it from coming."""
    for cause in _chain(error):
        if isinstance(cause, ssl.SSLError | aiohttp.ClientSSLError):
            return _unreachable("TLS failed: its certificate or protocol was not accepted", is_transient=False)
        if isinstance(cause, socket.gaierror):
            return _unreachable("its host name does not resolve")
        if isinstance(cause, ConnectionRefusedError):
            return _unreachable("the connection was refused")
        if isinstance(cause, ConnectionResetError | BrokenPipeError | aiohttp.ServerDisconnectedError):
            return _unreachable("the connection was reset")
        if isinstance(cause, httpx.InvalidURL | httpx.UnsupportedProtocol | aiohttp.InvalidURL):
            return _unreachable("base_url is no HTTP address", is_transient=False)
        if isinstance(cause, aiohttp.ClientResponseError) and any(
            isinstance(each, LineTooLong) for each in _chain(cause)
        ):
            what = 'a header of its answer is longer than 8 KB; `models.transport = "httpx"` takes longer ones'
            return fault(ErrorCode.PROVIDER_BAD_RESPONSE, what)
        if isinstance(cause, aiohttp.ClientResponseError) or _is_no_http(cause):
            what = "what answers there does not speak HTTP"
            return fault(ErrorCode.PROVIDER_BAD_RESPONSE, what)
    if any(isinstance(cause, TimeoutError) for cause in _chain(error)):
        return _unreachable("no connection within the time limit")
    if isinstance(error, httpx.RemoteProtocolError):
        return _unreachable("the connection was closed without an answer")
    return _unreachable(f"the connection failed ({type(error).__name__})")


def fault_within_response(error: BaseException) -> Fault:
    """The response had begun: a cut, or bytes that do not decode."""
    if any(isinstance(cause, httpx.DecodingError) for cause in _chain(error)):
        what = "the compressed answer does not decode"
        return fault(ErrorCode.PROVIDER_BAD_RESPONSE, what)
    return fault(ErrorCode.PROVIDER_STREAM_CUT)


def _unreachable(what: str, *, is_transient: bool = True) -> Fault:
    return fault(ErrorCode.PROVIDER_UNREACHABLE, f"the service cannot be reached: {what}", is_transient=is_transient)


def _is_no_http(cause: BaseException) -> bool:
    """h11 met bytes that are no response; it uses the same type when the peer just closes."""
    return isinstance(cause, httpx.RemoteProtocolError) and "disconnected" not in str(cause).lower()


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from, outermost first; groups (several addresses tried) member by member."""
    seen: set[int] = set()
    pending: list[BaseException] = [error]
    while pending:
        cause = pending.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            pending.extend(cause.exceptions)
        pending.extend(linked for linked in (cause.__cause__, cause.__context__) if linked is not None)
