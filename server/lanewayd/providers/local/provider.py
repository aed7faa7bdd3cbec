"""The embedded model as a Provider: the same HTTP and the same language as every other, to a process of our own."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from lanewayd.clock import Clock
from lanewayd.errors import ErrorCode
from lanewayd.messages import LOCAL_PROVIDER, AssistantMessage, RunError, StopReason, ToolCall, Usage
from lanewayd.providers.call_ids import CallIdFactory
from lanewayd.providers.http_provider import HttpProvider, HttpService, TransportKind, make_transport
from lanewayd.providers.interface import Done, Failed, ModelRequest, StreamEvent
from lanewayd.providers.local.dialect import LocalChat
from lanewayd.providers.local.supervisor import Endpoint, ModelSupervisor, ModelUnavailable


@dataclass(frozen=True, slots=True)
class LocalService:
    """The model that the process serves, and how it is reached."""

    model: str
    api_key: str
    timeout_s: float | None = None
    transport: TransportKind = "aiohttp"


class LocalProvider:
    """Starts the process when it is first asked. Owner of the supervisor and of the connections to each process."""

    def __init__(
        self,
        service: LocalService,
        *,
        supervisor: ModelSupervisor,
        dialect: LocalChat,
        clock: Clock,
        new_call_id: CallIdFactory,
    ) -> None:
        self._service = service
        self._supervisor = supervisor
        self._dialect = dialect
        self._clock = clock
        self._new_call_id = new_call_id
        self._http: HttpProvider | None = None
        self._endpoint: Endpoint | None = None
        self._progress_at = 0.0

    @property
    def name(self) -> str:
        return LOCAL_PROVIDER

    def has_native_schema(self, request: ModelRequest) -> bool:
        return self._dialect.has_native_schema(request)

    async def close(self) -> None:
        await self._supervisor.close()
        if self._http is not None:
            http, self._http, self._endpoint = self._http, None, None
            await http.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        if request.model != self._service.model:
            what = f"the model here is {self._service.model}; another one is a matter of `models.local.gguf`"
            yield self._failed(request, ErrorCode.PROVIDER_MODEL_NOT_FOUND, what)
            return
        try:
            endpoint = await self._supervisor.endpoint()
        except ModelUnavailable as reason:
            yield self._failed(request, ErrorCode.PROVIDER_UNAVAILABLE, f"it does not start: {reason}")
            return
        http = await self._connected(endpoint)
        question = self._dialect.question(request)
        spent = Usage()
        if question is not None:
            outcome = await self._answered(http, request, endpoint)
            if isinstance(outcome, Failed):
                yield outcome
                return
            call = question.call_in(outcome.message.text, request.messages, call_id=self._new_call_id())
            if call is not None:
                yield Done(_calling(outcome.message, call))
                return
            spent = outcome.message.usage
        async with aclosing(self._heard(http, replace(request, tools=()), endpoint)) as events:
            async for event in events:
                yield _with_usage(event, spent)

    async def _answered(self, http: HttpProvider, request: ModelRequest, endpoint: Endpoint) -> Done | Failed:
        """The answer as a whole: what a model says to a question is shown to nobody."""
        async with aclosing(self._heard(http, request, endpoint)) as events:
            async for event in events:
                if isinstance(event, Done):
                    return event
                if isinstance(event, Failed):
                    return replace(event, partial=replace(event.partial, content=()))
        return self._failed(request, ErrorCode.PROVIDER_BAD_RESPONSE, "it ended without an answer")

    async def _heard(
        self, http: HttpProvider, request: ModelRequest, endpoint: Endpoint
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of one request. A process that answers nobody any more is ended; one that is busy is not."""
        heard_at = self._clock.monotonic()
        async with aclosing(http.stream(request)) as events:
            async for event in events:
                if not isinstance(event, Failed):
                    heard_at = self._progress_at = self._clock.monotonic()
                elif event.error.reason == ErrorCode.PROVIDER_STALLED.value and self._progress_at <= heard_at:
                    self._supervisor.restart(endpoint)
                yield event

    async def _connected(self, endpoint: Endpoint) -> HttpProvider:
        """Connections to the process that serves now; those to an earlier one, which is dead, are closed."""
        former, http = self._http, self._http
        if http is None or self._endpoint != endpoint:
            self._endpoint = endpoint
            http = self._http = HttpProvider(
                service=HttpService(
                    name=LOCAL_PROVIDER,
                    base_url=f"http://127.0.0.1:{endpoint.port}/v1",
                    timeout_s=self._service.timeout_s,
                    is_self_hosted=True,
                ),
                dialect=self._dialect,
                clock=self._clock,
                api_key=self._service.api_key,
                transport=make_transport(self._service.transport, is_tls=False),
            )
            if former is not None:
                await former.close()
        return http

    def _failed(self, request: ModelRequest, reason: ErrorCode, what: str) -> Failed:
        error = RunError(
            reason.value, f"{LOCAL_PROVIDER}, model {request.model}: {what}", LOCAL_PROVIDER, request.model
        )
        return Failed(error, AssistantMessage((), LOCAL_PROVIDER, request.model, StopReason.ERROR))


def _calling(message: AssistantMessage, call: ToolCall) -> AssistantMessage:
    return replace(message, content=(call,), stop_reason=StopReason.TOOL_USE)


def _with_usage(event: StreamEvent, spent: Usage) -> StreamEvent:
    """The event; the last one counts the tokens of the question too."""
    if isinstance(event, Done):
        return replace(event, message=replace(event.message, usage=spent + event.message.usage))
    if isinstance(event, Failed):
        return replace(event, partial=replace(event.partial, usage=spent + event.partial.usage))
    return event
