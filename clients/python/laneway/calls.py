"""Makes calls on a channel: bounded in time, repeated where that is safe, failures as errors of this package.

Rules are in `retries`; here is the shell that asks and then acts. Every call is cancelled in `finally`: one that is
only dropped would live on in gRPC.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import Message

from laneway.errors import ClientClosed, LanewayError, error_of, make_error
from laneway.retries import Losses, pause_s

Metadata = Sequence[tuple[str, str | bytes]]
Sent = Message | AsyncIterator[Message]
"""The request of a call, or all of a client stream; that one can be made once only."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a client waits for a server, in seconds. Times that the server may take by contract come on top."""

    patience_s: float = 60.0
    """How long a call is repeated, unless it has a deadline of its own, and how long a stream looks for a lost server:
    longer than the restart of a server."""
    attempt_s: float = 10.0
    """How long one attempt of a call may take before it is given up and repeated."""
    one_wait_s: float = 60.0
    """The longest single Wait; longer waits are several. A short one survives proxies that end quiet calls."""
    silence_s: float = 30.0
    """A stream that says nothing for so long is taken up again; the server gives a sign of life after 15."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A failure that is about to be repeated."""

    error: LanewayError
    number: int
    """In a row, from 1."""
    pause_s: float
    """After it the next attempt is made."""


OnLoss = Callable[[Loss], Awaitable[None]]


async def ignore_loss(_loss: Loss) -> None:
    """For clients that do not want to hear of losses."""


def _is_cancelled_from_outside() -> bool:
    """Whether CancelledError is meant for this task, and not the way in which gRPC says that the channel was closed."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class MessageStream:
    """One server stream. `close` it in `finally`."""

    def __init__(self, call: Any, *, silence_s: float | None) -> None:
        self._call = call
        self._silence_s = silence_s
        self._messages = aiter(call)

    async def next(self) -> Any:
        """The next message; None after the last one. Raises LanewayError; DeadlineExceeded after `silence_s`."""
        try:
            async with asyncio.timeout(self._silence_s):
                return await anext(self._messages, None)
        except TimeoutError as error:
            text = f"nothing was heard on the stream for {self._silence_s:g} s"
            raise make_error(grpc.StatusCode.DEADLINE_EXCEEDED, text) from error
        except grpc.aio.AioRpcError as error:
            raise error_of(error) from error
        except asyncio.CancelledError:
            if _is_cancelled_from_outside():
                raise
            raise ClientClosed from None

    async def close(self) -> None:
        """Cancel it. Idempotent."""
        self._call.cancel()
        await self._messages.aclose()


class Caller:
    """Makes the calls of one client. `method` is a method of a generated stub."""

    def __init__(self, *, timeouts: Timeouts, metadata: Metadata, on_loss: OnLoss) -> None:
        self.timeouts = timeouts
        self._metadata = tuple(metadata)
        self._on_loss = on_loss

    @staticmethod
    def now() -> float:
        """Seconds of the monotonic clock."""
        return asyncio.get_running_loop().time()

    async def once(self, method: Any, request: Sent, *, limit_s: float, waits_for_server: bool = False) -> Any:
        """The answer of one attempt. Raises LanewayError after `limit_s` at the latest.

        `waits_for_server`: not fail at once when there is no connection, because there will be no second attempt.
        """
        call = self._begin(method, request, timeout=limit_s, wait_for_ready=waits_for_server)
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise error_of(error) from error
        except asyncio.CancelledError:
            if _is_cancelled_from_outside():
                raise
            raise ClientClosed from None
        finally:
            call.cancel()

    async def only_once(self, method: Any, request: Sent, *, deadline_s: float | None) -> Any:
        """The answer of a call that must not be repeated."""
        limit_s = self.timeouts.patience_s if deadline_s is None else deadline_s
        return await self.once(method, request, limit_s=limit_s, waits_for_server=True)

    async def repeat(
        self, method: Any, request: Message, *, deadline_s: float | None = None, answer_s: float = 0.0
    ) -> Any:
        """The answer of a call that may be repeated, made until `deadline_s` is over (None = `patience_s`).

        `answer_s`: how long the server may take for its answer. Raises the last LanewayError.
        """
        began = self.now()
        losses = Losses(self.timeouts.patience_s if deadline_s is None else deadline_s, since=began)
        while True:
            left_s = began + losses.patience_s - self.now()
            try:
                return await self.once(method, request, limit_s=min(left_s, self.timeouts.attempt_s + answer_s))
            except LanewayError as error:
                await self.pause(losses, error)

    async def pages(self, method: Any, request: Any, field: str) -> AsyncIterator[Any]:
        """The items in `field` of all pages. `request` is changed."""
        while True:
            page = await self.repeat(method, request)
            for item in getattr(page, field):
                yield item
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def stream(
        self, method: Any, request: Message, *, silence_s: float | None, waits_for_server: bool = False
    ) -> MessageStream:
        """Begin a server stream, without a deadline."""
        call = self._begin(method, request, timeout=None, wait_for_ready=waits_for_server)
        return MessageStream(call, silence_s=silence_s)

    def _begin(self, method: Any, request: Sent, *, timeout: float | None, wait_for_ready: bool) -> Any:
        try:
            return method(request, timeout=timeout, metadata=self._metadata, wait_for_ready=wait_for_ready)
        except grpc.aio.UsageError as error:
            raise ClientClosed from error

    async def pause(self, losses: Losses, error: LanewayError) -> None:
        """Return when the next attempt is due. Raises `error` when there is to be none."""
        wanted_s = losses.pause_s(error, now=self.now(), jitter=_chance())
        if wanted_s is None:
            if losses.count > 1:
                error.add_note(f"given up after {losses.count} attempts")
            raise error
        await self._on_loss(Loss(error, losses.count, wanted_s))
        await asyncio.sleep(wanted_s)

    async def rest(self, times: int, *, at_most_s: float) -> None:
        """Pause before asking a server again that has answered and is about to leave, for the `times`-th time."""
        await asyncio.sleep(min(pause_s(times, jitter=_chance()), at_most_s))


def _chance() -> float:
    return random.random()  # noqa: S311 - spreads callers, guards nothing
