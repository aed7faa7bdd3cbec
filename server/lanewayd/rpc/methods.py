"""Connects handlers to gRPC: requests are parsed and answers encoded here, inside the error translation.

With gRPC's own deserialisers a request with bad UTF-8 would end as INTERNAL without a reason; and stored events must
leave as the bytes they are.
"""

import re
import time
from asyncio import CancelledError
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.rpc.status import errors_as_status
from lanewayd.rpc.streams import closed_at_the_end
from lanewayd.telemetry.metrics import Metrics

Context = grpc.aio.ServicerContext[Any, Any]
TenantResolver = Callable[[Context], str]
"""Names the tenant of a call. Raises LanewayError to refuse it."""

Send = Callable[[bytes], Awaitable[None]]
"""Sends one encoded message of a stream; returns when flow control lets it through."""

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler knows of its call beside the request."""

    tenant: str
    traceparent: str = ""
    """W3C trace context of the caller; empty when it sent none, or none that is valid."""
    remaining_s: float | None = None
    """Time until the caller's deadline when the call came in; None = no deadline."""


def service_handler(
    service: ServiceDescriptor, handlers: object, tenant_of: TenantResolver, *, metrics: Metrics | None = None
) -> grpc.GenericRpcHandler:
    """All methods of `service`, each answered by the method of `handlers` with the same name.

    Unary: `async (request, call) -> response message`. Server stream: `async (request, call, send) -> None`. Client
    stream: `async (iterator of requests, call) -> response message`.
    Raises AttributeError when a method is missing. `metrics`: None = off.
    """
    metrics = metrics or Metrics.off()
    methods = {method.name: _method_handler(method, handlers, tenant_of, metrics) for method in service.methods}
    return grpc.method_handlers_generic_handler(service.full_name, methods)


def _method_handler(method: MethodDescriptor, handlers: object, tenant_of: TenantResolver, metrics: Metrics) -> Any:
    handle = getattr(handlers, method.name)
    if method.client_streaming and method.server_streaming:
        raise ValueError(f"{method.full_name}: streams in both directions have no form here yet")
    if method.client_streaming:
        return grpc.stream_unary_rpc_method_handler(
            _measured(_client_stream(method, handle, tenant_of), method, metrics)
        )
    if method.server_streaming:
        return grpc.unary_stream_rpc_method_handler(_measured(_stream(method, handle, tenant_of), method, metrics))
    return grpc.unary_unary_rpc_method_handler(_measured(_unary(method, handle, tenant_of), method, metrics))


def _unary(
    method: MethodDescriptor, handle: Callable[[Any, Call], Awaitable[Message]], tenant_of: TenantResolver
) -> Any:
    request_class = GetMessageClass(method.input_type)

    async def answer(encoded: bytes, context: Context) -> bytes:
        async with errors_as_status(context, method.full_name):
            call = _call(context, tenant_of)
            response = await handle(_parsed(request_class, encoded), call)
            return response.SerializeToString(deterministic=True)
        raise AssertionError("an error of a call leaves as its status")

    return answer


def _stream(
    method: MethodDescriptor, handle: Callable[[Any, Call, Send], Awaitable[None]], tenant_of: TenantResolver
) -> Any:
    request_class = GetMessageClass(method.input_type)

    async def answer(encoded: bytes, context: Context) -> None:
        async with errors_as_status(context, method.full_name):
            call = _call(context, tenant_of)
            await handle(_parsed(request_class, encoded), call, context.write)

    return answer


def _client_stream(
    method: MethodDescriptor,
    handle: Callable[[AsyncIterator[Any], Call], Awaitable[Message]],
    tenant_of: TenantResolver,
) -> Any:
    request_class = GetMessageClass(method.input_type)

    async def answer(encoded: AsyncIterator[bytes], context: Context) -> bytes:
        async with errors_as_status(context, method.full_name):
            requests = _all_parsed(request_class, encoded, context)
            async with closed_at_the_end(requests):
                response = await handle(requests, _call(context, tenant_of))
            return response.SerializeToString(deterministic=True)
        raise AssertionError("an error of a call leaves as its status")

    return answer


async def _all_parsed(
    request_class: type[Message], encoded: AsyncIterator[bytes], context: Context
) -> AsyncIterator[Message]:
    """The requests of a stream that its caller has ended. One that was cut off raises instead of ending."""
    async for request in encoded:
        yield _parsed(request_class, request)
    # gRPC ends the iteration also when the call was cancelled or its connection lost, and cancels this task only then:
    # what came in would be taken for all of it. Nothing can be sent on such a call, so that this waits for the news.
    await context.send_initial_metadata(())


def _measured(answer: Callable[[Any, Context], Awaitable[Any]], method: MethodDescriptor, metrics: Metrics) -> Any:
    """`answer`, its duration and status measured."""
    name = f"{method.containing_service.full_name}/{method.name}"

    async def measured(encoded: Any, context: Context) -> Any:
        started_s, status = time.perf_counter(), grpc.StatusCode.OK.name
        try:
            return await answer(encoded, context)
        except grpc.aio.AbortError:
            status = _status_name(context)
            raise
        except BaseException as error:
            status = (grpc.StatusCode.CANCELLED if isinstance(error, CancelledError) else grpc.StatusCode.UNKNOWN).name
            raise
        finally:
            metrics.call_answered(name, status, time.perf_counter() - started_s)

    return measured


def _status_name(context: Context) -> str:
    code = context.code()
    return next((status.name for status in grpc.StatusCode if code in (status, status.value[0])), "UNKNOWN")


def _call(context: Context, tenant_of: TenantResolver) -> Call:
    return Call(tenant_of(context), _traceparent(context), context.time_remaining())


def _parsed(request_class: type[Message], encoded: bytes) -> Message:
    try:
        return request_class.FromString(encoded)
    except DecodeError as error:
        name = request_class.DESCRIPTOR.full_name
        raise LanewayError(
            ErrorCode.MALFORMED_MESSAGE,
            f"The request is not a valid {name}: it does not parse, or a text is not UTF-8.",
        ) from error


def _traceparent(context: Context) -> str:
    for key, value in context.invocation_metadata() or ():
        if key == "traceparent" and isinstance(value, str):
            return value if _TRACEPARENT.fullmatch(value) else ""
    return ""
