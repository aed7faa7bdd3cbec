"""What is told of a run: its span, the spans of its model and tool calls, and the metrics that belong to them.

Values in, nothing out: no decision depends on telemetry. With telemetry off a run costs a few calls that do nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.context import Context, get_current
from opentelemetry.trace import NoOpTracer, Span, SpanKind, Tracer

from lanewayd.telemetry import names
from lanewayd.telemetry.content import Content
from lanewayd.telemetry.metrics import Metrics, Tokens, known_stop_reason, whole_input
from lanewayd.telemetry.spans import Attribute, PlannedIds, caller_of, fail, run_context, run_ids, run_links, span

MAX_NAME_CHARS = 100
"""Of what a caller or a model named, in the name of a span."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a provider is reached."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One dispatch of a run."""

    run_id: str
    agent: str
    conversation_id: str
    model: str
    """`provider/model`"""
    traceparent: str
    attempt: int
    """Dispatches so far, this one included."""
    waited_s: float | None = None
    """Time from acceptance to this dispatch; None unless it is the first."""


class Telemetry:
    """One per service, handed down. `metrics` measures what belongs to no run."""

    def __init__(
        self,
        tracer: Tracer,
        metrics: Metrics,
        *,
        monotonic: Callable[[], float],
        ids: PlannedIds | None = None,
        content: Content | None = None,
        places: Mapping[str, Place] | None = None,
    ) -> None:
        """`content`: None captures none. `places`: of providers, by their names in the settings."""
        self.metrics = metrics
        self.content = content
        self.tracer = tracer
        self.monotonic = monotonic
        self.places = places or {}
        self._ids = ids

    @classmethod
    def off(cls) -> "Telemetry":
        """Tells nobody anything."""
        return cls(NoOpTracer(), Metrics.off(), monotonic=lambda: 0.0)

    @contextmanager
    def run(self, facts: RunFacts) -> Iterator["RunTrace"]:
        """The span of one dispatch, current inside the block and for the tasks that are made there."""
        caller = caller_of(facts.traceparent)
        context = run_context(caller, facts.run_id)
        if self._ids is not None:
            self._ids.plan(*run_ids(facts.run_id, facts.attempt))
        provider, _, model = facts.model.partition("/")
        attributes: dict[str, Attribute] = {
            names.OPERATION: names.INVOKE_AGENT,
            names.AGENT: facts.agent,
            names.CONVERSATION: facts.conversation_id,
            names.PROVIDER: names.PROVIDER_NAMES.get(provider, provider),
            names.REQUEST_MODEL: model,
            names.RUN_ID: facts.run_id,
            names.ATTEMPT: facts.attempt,
        }
        links = run_links(caller, facts.run_id, facts.attempt) if facts.attempt > 1 else []
        name = f"{names.INVOKE_AGENT} {facts.agent}"
        with span(self.tracer, name, parent=context, attributes=attributes, links=links) as run_span:
            if facts.waited_s is not None:
                run_span.add_event(names.QUEUE_WAIT_EVENT, {names.QUEUE_WAIT_SECONDS: facts.waited_s})
            yield RunTrace(self, facts, run_span, get_current())


class RunTrace:
    """One dispatch of a run, while it executes."""

    def __init__(self, telemetry: Telemetry, facts: RunFacts, run_span: Span, context: Context) -> None:
        self._telemetry = telemetry
        self._facts = facts
        self._span = run_span
        self._context = context
        self._model_calls = 0
        self._tool_calls = 0

    @classmethod
    def off(cls) -> "RunTrace":
        """Tells nobody anything."""
        telemetry = Telemetry.off()
        facts = RunFacts("", "", "", "", "", 1)
        context = Context()
        return cls(telemetry, facts, telemetry.tracer.start_span("", context=context), context)

    def ended(
        self,
        *,
        state: str,
        stop_reason: str,
        used_s: float,
        error_type: str = "",
        tokens: Tokens | None = None,
    ) -> None:
        """The run's end is written. `used_s`: its executing time over all dispatches."""
        if self._span.is_recording():
            self._span.set_attributes(
                {
                    names.RUN_STATE: state,
                    names.RUN_STOP_REASON: known_stop_reason(stop_reason),
                    **_usage(tokens),
                }
            )
            if error_type:
                fail(self._span, error_type)
        self._telemetry.metrics.agent_invoked(
            self._facts.agent,
            used_s,
            model_calls=self._model_calls,
            tool_calls=self._tool_calls,
            error_type=error_type,
        )

    def handed_over(self) -> None:
        """Another process goes on with the run."""
        self._span.set_attribute(names.RUN_STATE, "handed_over")

    def retrying(self, *, error_type: str, attempt: int, delay_s: float) -> None:
        """The model call failed; after `delay_s` comes try number `attempt`."""
        self._span.add_event(
            names.RETRY_EVENT,
            {names.ERROR_TYPE: error_type, names.ATTEMPT: attempt, names.RETRY_DELAY_SECONDS: delay_s},
        )

    @contextmanager
    def model_call(self, provider: str, model: str) -> Iterator["ModelCallTrace"]:
        """The span of one try. `provider` as in the settings."""
        self._model_calls += 1
        attributes: dict[str, Attribute] = {
            names.OPERATION: names.CHAT,
            names.PROVIDER: names.PROVIDER_NAMES.get(provider, provider),
            names.REQUEST_MODEL: model,
            names.REQUEST_STREAM: True,
            names.CONVERSATION: self._facts.conversation_id,
            names.RUN_ID: self._facts.run_id,
        }
        place = self._telemetry.places.get(provider)
        if place is not None:
            attributes[names.SERVER_ADDRESS], attributes[names.SERVER_PORT] = place.address, place.port
        name = f"{names.CHAT} {model[:MAX_NAME_CHARS]}"
        with span(
            self._telemetry.tracer, name, parent=self._context, kind=SpanKind.CLIENT, attributes=attributes
        ) as call_span:
            yield ModelCallTrace(self._telemetry, provider, model, call_span)

    @contextmanager
    def tool_call(self, tool: str, call_id: str, description: str) -> Iterator["ToolCallTrace"]:
        """The span of one call of an offered tool."""
        self._tool_calls += 1
        attributes = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL: tool,
            names.TOOL_CALL: call_id,
            names.TOOL_TYPE: "function",
            names.TOOL_DESCRIPTION: description,
            names.RUN_ID: self._facts.run_id,
        }
        name = f"{names.EXECUTE_TOOL} {tool}"
        with span(self._telemetry.tracer, name, parent=self._context, attributes=attributes) as call_span:
            yield ToolCallTrace(self._telemetry, tool, call_span)


class ModelCallTrace:
    """One try of a model call, while it streams. Without an end it counts as stopped from outside."""

    def __init__(self, telemetry: Telemetry, provider: str, model: str, call_span: Span) -> None:
        self._telemetry = telemetry
        self._provider = provider
        self._model = model
        self._span = call_span
        self._started_s = telemetry.monotonic()
        self._first_s = 0.0

    @property
    def captures_content(self) -> bool:
        """Whether `sent` and the output of `succeeded` are worth making."""
        return self._telemetry.content is not None and self._span.is_recording()

    def sent(self, captured: "CapturedRequest") -> None:
        """What the model is asked."""
        content = self._telemetry.content
        if content is not None:
            self._span.set_attributes(
                {
                    names.SYSTEM_INSTRUCTIONS: content.newest([{"type": "text", "content": captured.system}]),
                    names.INPUT_MESSAGES: content.newest(captured.messages),
                    names.TOOL_DEFINITIONS: content.newest(captured.tools),
                }
            )

    def first_chunk(self) -> None:
        """The model began to answer."""
        self._first_s = self._telemetry.monotonic()

    def succeeded(
        self,
        *,
        model: str,
        finish_reason: str,
        tokens: Tokens,
        chunks: int,
        output: Mapping[str, Any] | None = None,
    ) -> None:
        """The message is complete. `output`: its captured form."""
        if self._span.is_recording():
            attributes: dict[str, Attribute] = {
                names.RESPONSE_MODEL: model,
                names.FINISH_REASONS: [finish_reason],
                **_usage(tokens),
            }
            if chunks:
                attributes[names.FIRST_CHUNK] = self._first_s - self._started_s
            if output is not None and self._telemetry.content is not None:
                attributes[names.OUTPUT_MESSAGES] = self._telemetry.content.newest([output])
            self._span.set_attributes(attributes)
        self._measure(tokens, chunks, "")

    def failed(self, *, error_type: str, tokens: Tokens | None, chunks: int) -> None:
        """The call failed. `tokens`: None = it was refused before anything was used."""
        if self._span.is_recording():
            self._span.set_attributes(_usage(tokens))
            fail(self._span, error_type)
        self._measure(tokens, chunks, error_type)

    def _measure(self, tokens: Tokens | None, chunks: int, error_type: str) -> None:
        metrics, now_s = self._telemetry.metrics, self._telemetry.monotonic()
        attributes = metrics.model_called(self._provider, self._model, now_s - self._started_s, error_type=error_type)
        if tokens is not None:
            metrics.tokens_used(attributes, tokens)
        if chunks:
            per_chunk_s = (now_s - self._first_s) / (chunks - 1) if chunks > 1 else None
            metrics.chunks_received(attributes, self._first_s - self._started_s, per_chunk_s)


class ToolCallTrace:
    """One tool call, while it runs. Without an end it counts as stopped from outside."""

    def __init__(self, telemetry: Telemetry, tool: str, call_span: Span) -> None:
        self._telemetry = telemetry
        self._tool = tool
        self._span = call_span
        self._started_s = telemetry.monotonic()

    def ended(self, *, outcome: str, is_error: bool, arguments_json: str, text: str) -> None:
        """The call has its result. Arguments and text are content."""
        error_type = outcome if is_error else ""
        if self._span.is_recording():
            self._span.set_attribute(names.TOOL_OUTCOME, outcome)
            if error_type:
                fail(self._span, error_type)
            content = self._telemetry.content
            if content is not None:
                self._span.set_attribute(names.TOOL_ARGUMENTS, content.arguments(arguments_json))
                self._span.set_attribute(names.TOOL_RESULT, content.text(text))
        duration_s = self._telemetry.monotonic() - self._started_s
        self._telemetry.metrics.tool_called(self._tool, duration_s, error_type=error_type)


@dataclass(frozen=True, slots=True)
class CapturedRequest:
    """A model request in the form of the conventions: messages of role and parts."""

    system: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


def _usage(tokens: Tokens | None) -> dict[str, Attribute]:
    if tokens is None or tokens.unavailable:
        return {}
    usage: dict[str, Attribute] = {
        names.INPUT_TOKENS: whole_input(tokens),
        names.OUTPUT_TOKENS: tokens.output_tokens,
    }
    details = {
        names.CACHE_READ_TOKENS: tokens.cache_read_tokens,
        names.CACHE_WRITE_TOKENS: tokens.cache_write_tokens,
        names.REASONING_TOKENS: tokens.reasoning_tokens,
    }
    return usage | {name: count for name, count in details.items() if count}
