"""The one way to a model service: HTTP with a streamed answer. The only file that talks to one (D-15)."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal

import httpx
import httpx_aiohttp

from lanewayd.clock import Clock
from lanewayd.errors import ErrorCode
from lanewayd.messages import FailureClass
from lanewayd.providers.endpoint import address
from lanewayd.providers.failures import Fault, classify_response, failed_by, fault, run_error, stalled
from lanewayd.providers.hosting import idle_limit_s, is_self_hosted
from lanewayd.providers.interface import EVENTS_PER_LOOP_TURN, Decoder, Dialect, Failed, ModelRequest, StreamEvent
from lanewayd.providers.redaction import hide_secret
from lanewayd.providers.signatures import without_rejected_signatures
from lanewayd.providers.transport_faults import TRANSPORT_EXCEPTIONS, fault_before_response, fault_within_response
from lanewayd.providers.watchdog import IdleExpired, IdleWatchdog

ApiKey = str | Callable[[str], str | None] | None
"""One key for all calls, or how the key of a profile is found: it may raise OSError."""
TransportKind = Literal["aiohttp", "httpx"]

_KEEPALIVE = httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=15.0)
# aiohttp reads 0 as "no limit" and an absent number as 100: then the 101st run would wait for the first.
_KEEPALIVE_AIOHTTP = httpx.Limits(max_connections=0, max_keepalive_connections=64, keepalive_expiry=15.0)
_MAX_ERROR_BODY_BYTES = 65_536
_ERROR_BODY_WAIT_S = 10.0
# After the model has finished: for its usage and end mark, and then for the end of the body that frees the connection.
_USAGE_WAIT_S = 10.0
_BODY_END_WAIT_S = 0.1
_LEGAL_KEY = re.compile(r"[\x21-\x7e]+")
_LARGE_REQUEST_BYTES = 100_000
_KEY_REFUSED = frozenset(
    {FailureClass.AUTH, FailureClass.AUTH_PERMANENT, FailureClass.BILLING, FailureClass.RATE_LIMIT}
)


def make_transport(kind: TransportKind, *, is_tls: bool = True) -> httpx.AsyncBaseTransport:
    """The faster transport, or the stock one. Proxies from the environment are not used.

    Without `is_tls`, for plain HTTP only, no certificates are read: that takes tens of milliseconds, on the loop.
    """
    if kind == "aiohttp":
        return httpx_aiohttp.AiohttpTransport(verify=is_tls, limits=_KEEPALIVE_AIOHTTP)
    return httpx.AsyncHTTPTransport(verify=is_tls, limits=_KEEPALIVE)


@dataclass(frozen=True, slots=True)
class HttpService:
    """A model service as configured.

    `timeout_s` bounds the connect and each wait without progress; None takes the default of its class (120 s cloud,
    300 s self-hosted). `first_event_timeout_s` bounds the wait for the first event, if it is the shorter one.
    """

    name: str
    base_url: str
    timeout_s: float | None = None
    connect_timeout_s: float = 10.0
    first_event_timeout_s: float | None = None
    is_self_hosted: bool = False
    dialect_is_self_hosted: bool = False
    """Only services of one's own speak the dialect."""

    def __post_init__(self) -> None:
        """Raises ValueError for a base_url that is no HTTP address."""
        try:
            url = httpx.URL(self.base_url)
        except httpx.InvalidURL as error:
            raise ValueError(f"base_url of provider {self.name} is no URL: {error}") from error
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError(f"base_url of provider {self.name} is no http or https URL")


class HttpProvider:
    """One model service behind one connection pool.

    `api_key` is asked for at each call; where it is sent the dialect says. No key ever stands in an event, none of
    `secrets` either; what says that a key was refused names its profile. An abandoned call closes its connection and
    leaves the others alone. A request whose signatures the service rejects is sent once more without them. Owns the
    transport: `close` ends it.
    """

    def __init__(
        self,
        *,
        service: HttpService,
        dialect: Dialect,
        clock: Clock,
        api_key: ApiKey = None,
        secrets: Callable[[], Sequence[str]] = tuple,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._service = service
        self._dialect = dialect
        self._clock = clock
        self._api_key = api_key
        self._secrets = secrets
        connect_s = min(service.connect_timeout_s, service.timeout_s or service.connect_timeout_s)
        self._client = httpx.AsyncClient(
            transport=transport or make_transport("aiohttp"),
            # Everything but the connect is the watchdog's: it alone knows what is progress.
            timeout=httpx.Timeout(None, connect=connect_s),
            headers={"accept": "text/event-stream, application/json", "user-agent": "laneway"},
        )

    @property
    def name(self) -> str:
        return self._service.name

    def has_native_schema(self, request: ModelRequest) -> bool:
        return self._dialect.has_native_schema(request)

    async def close(self) -> None:
        await self._client.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        call = _Call(self._service, self._dialect, request, self._clock)
        try:
            key = self._key(request.profile)
        except _KeyUnusable as unusable:
            yield _with_profile(call.failed(fault(ErrorCode.PROVIDER_AUTH, str(unusable))), request.profile)
            return
        sent = 0
        async with aclosing(call.events(self._client, key)) as batches:
            async for batch in batches:
                if isinstance(batch[-1], Failed):
                    failed = _with_profile(_without_keys(batch[-1], (key, *self._secrets())), request.profile)
                    batch = (*batch[:-1], failed)  # noqa: PLW2901 - the same batch
                for event in batch:
                    yield event
                    # A burst that is already buffered never suspends by itself; the first event should leave at once.
                    if sent % EVENTS_PER_LOOP_TURN == 0:
                        await asyncio.sleep(0)
                    sent += 1

    def _key(self, profile: str) -> str:
        try:
            key = self._api_key(profile) if callable(self._api_key) else self._api_key
        except OSError as error:
            raise _KeyUnusable(f"the API key cannot be read: {error.strerror or type(error).__name__}") from None
        key = (key or "").strip()
        if key and not _LEGAL_KEY.fullmatch(key):
            raise _KeyUnusable("the API key holds blanks or characters that no header can carry")
        return key


class _KeyUnusable(Exception):
    """The key cannot be read or sent; the text does not show it."""


class _Call:
    """One request and its answer."""

    def __init__(self, service: HttpService, dialect: Dialect, request: ModelRequest, clock: Clock) -> None:
        self._service = service
        self._dialect = dialect
        self._request = request
        self._clock = clock
        self._decoder: Decoder = dialect.decoder(request, service.name)
        self._idle_s = idle_limit_s(
            timeout_s=service.timeout_s,
            is_self_hosted=is_self_hosted(
                service.base_url,
                request.model,
                says_settings=service.is_self_hosted,
                dialect_is_self_hosted=service.dialect_is_self_hosted,
            ),
            cap_s=request.idle_timeout_cap_s,
        )
        cap_s = request.idle_timeout_cap_s
        self._deadline_s = None if cap_s is None else clock.monotonic() + cap_s
        self._first_s = min(self._idle_s, service.first_event_timeout_s or self._idle_s)
        self._watchdog = IdleWatchdog(clock, self._first_s)
        self._sent_bytes = 0

    def failed(self, cause: Fault, *, http_status: int = 0) -> Failed:
        """The terminal event for a fault outside the body."""
        error = run_error(cause, provider=self._service.name, model=self._request.model, http_status=http_status)
        return failed_by(cause, self._decoder.fail(error, is_transient=cause.is_transient))

    async def events(self, client: httpx.AsyncClient, key: str) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """The events of the call as they come, the terminal last. Closing the generator closes the response."""
        while True:
            try:
                with self._watchdog:
                    response = await self._send(client, key)
            except IdleExpired:
                yield (self.failed(self._stalled()),)
                return
            except TRANSPORT_EXCEPTIONS as error:
                yield (self.failed(fault_before_response(error)),)
                return
            try:
                if response.is_success:
                    async with aclosing(self._decoded(response)) as batches:
                        async for batch in batches:
                            yield batch
                    return
                body = await self._error_body(response)
            finally:
                await _close(response)
            unsigned = without_rejected_signatures(self._request, response.status_code, body)
            if unsigned is None:
                cause = classify_response(response.status_code, response.headers, body, now=self._clock.now())
                yield (self.failed(cause, http_status=response.status_code),)
                return
            self._request = unsigned  # it has no signatures, so it is sent anew once only

    async def _send(self, client: httpx.AsyncClient, key: str) -> httpx.Response:
        body = self._dialect.encode(self._request)
        self._sent_bytes = len(body)
        headers = {"content-type": "application/json", **self._dialect.headers(key)}
        url = address(self._service.base_url, self._dialect.path(self._request))
        return await client.send(client.build_request("POST", url, content=body, headers=headers), stream=True)

    async def _decoded(self, response: httpx.Response) -> AsyncGenerator[list[StreamEvent], None]:
        chunks = response.aiter_bytes()
        is_finished = False
        while not is_finished:
            progress = self._decoder.progress
            try:
                with self._watchdog:
                    chunk = await anext(chunks, None)
            except IdleExpired:
                yield self._after_fault(self._stalled(), response.status_code)
                return
            except TRANSPORT_EXCEPTIONS as error:
                yield self._after_fault(fault_within_response(error), response.status_code)
                return
            events = self._decoder.end() if chunk is None else self._decoder.feed(chunk)
            is_finished = self._decoder.is_finished
            if is_finished:
                await self._read_to_end(chunks)
            elif self._decoder.progress > progress:
                self._watchdog.reset(self._usage_wait_s() if self._decoder.is_complete else self._idle_s)
            if events:
                yield events

    def _usage_wait_s(self) -> float:
        """How long a finished answer waits for its usage and end mark: not into the run's deadline (R-5.125)."""
        wait_s = min(self._idle_s, _USAGE_WAIT_S)
        if self._deadline_s is None:
            return wait_s
        return max(0.0, min(wait_s, (self._deadline_s - self._clock.monotonic()) / 2))

    def _after_fault(self, cause: Fault, http_status: int) -> list[StreamEvent]:
        """What a fault leaves: an answer that was complete but for its end mark still counts."""
        if self._decoder.is_complete:
            return self._decoder.end()
        return [self.failed(cause, http_status=http_status)]

    async def _read_to_end(self, chunks: AsyncIterator[bytes]) -> None:
        """Read the rest of a finished body, so that the connection can be used again; a body left open costs it."""
        watchdog = IdleWatchdog(self._clock, _BODY_END_WAIT_S)
        try:
            with watchdog:
                while await anext(chunks, None) is not None:
                    pass
        except (IdleExpired, *TRANSPORT_EXCEPTIONS):  # nothing that comes after the end matters
            return

    async def _error_body(self, response: httpx.Response) -> bytes:
        """What comes of the body in a short time; it only explains the status."""
        body = b""
        watchdog = IdleWatchdog(self._clock, min(self._idle_s, _ERROR_BODY_WAIT_S))
        try:
            with watchdog:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) >= _MAX_ERROR_BODY_BYTES:
                        break
        except (IdleExpired, *TRANSPORT_EXCEPTIONS):
            return body  # with what came, or the status alone
        return body[:_MAX_ERROR_BODY_BYTES]

    def _stalled(self) -> Fault:
        if self._decoder.progress:
            return stalled(f"the stream stood still for {self._idle_s:g} s")
        what = f"no event came within {self._first_s:g} s of the request"
        if self._sent_bytes >= _LARGE_REQUEST_BYTES or self._request.tools:
            size_kb = self._sent_bytes / 1000
            what += (
                f"; the request had {size_kb:,.0f} kB and {len(self._request.tools)} tools: oversized tool schemas or"
                " results are a common cause"
            )
        return stalled(what)


async def _close(response: httpx.Response) -> None:
    """Give the connection back or end it, also when the task is cancelled meanwhile; its own faults come too late.

    A close that is broken off leaves the connection in the pool of the stock transport, in use for ever.
    """
    closing = asyncio.create_task(response.aclose(), name="close model response")
    interruption: asyncio.CancelledError | None = None
    while not closing.done():
        try:
            await asyncio.wait({closing})
        except asyncio.CancelledError as error:
            interruption = error
    if interruption is not None:
        raise interruption
    failure = closing.exception()
    if failure is not None and not isinstance(failure, TRANSPORT_EXCEPTIONS):
        raise failure


def _without_keys(failed: Failed, keys: Sequence[str]) -> Failed:
    """A provider may repeat a key in its error text."""
    message = failed.error.message
    for key in filter(None, keys):
        message = hide_secret(message, key)
    return failed if message == failed.error.message else replace(failed, error=replace(failed.error, message=message))


def _with_profile(failed: Failed, profile: str) -> Failed:
    """Of several keys, people must know which one it was."""
    if not profile or failed.kind not in _KEY_REFUSED:
        return failed
    message = f"{failed.error.message} (the key was that of the profile {profile!r})"
    return replace(failed, error=replace(failed.error, message=message))
