"""Spans: how one is started, made current, marked and ended; and which ids a run's spans have.

A span is made current only inside the `with` block of a coroutine, never across the yields of an async generator, so
that it is taken back by the task that set it. What raises is named by its type: texts of exceptions are not recorded,
they may quote what a user wrote.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from opentelemetry.context import Context, attach, detach, get_current, get_value, set_value
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    Tracer,
    get_current_span,
    set_span_in_context,
)

from lanewayd.telemetry import names

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")

Attribute = str | int | float | bool | Sequence[str]


class PlannedIds(Protocol):
    """Gives the next span the ids that were planned for it."""

    def plan(self, trace_id: int, span_id: int) -> None:
        """The next span gets these; a span with a parent keeps its parent's trace."""


@contextmanager
def span(
    tracer: Tracer,
    name: str,
    *,
    parent: Context,
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Mapping[str, Attribute] | None = None,
    links: Sequence[Link] = (),
) -> Iterator[Span]:
    """A span that is current inside the block and ended once behind it; a failure of the block marks it."""
    started = tracer.start_span(name, context=parent, kind=kind, attributes=attributes, links=links)
    token = attach(set_span_in_context(started, parent))
    try:
        yield started
    except asyncio.CancelledError:
        started.set_attribute(names.CANCELLED, True)
        raise
    except Exception as error:
        fail(started, type(error).__name__)
        raise
    finally:
        detach(token)
        started.end()


def fail(failed: Span, error_type: str) -> None:
    """Mark a span as failed, without the error's text."""
    failed.set_attribute(names.ERROR_TYPE, error_type)
    failed.set_status(StatusCode.ERROR)


def caller_of(traceparent: str) -> SpanContext | None:
    """The caller's span; None for an empty or malformed `traceparent`. Source: W3C Trace Context, 3.2."""
    match = _TRACEPARENT.fullmatch(traceparent)
    if match is None:
        return None
    flags = TraceFlags(int(match[3], 16))
    caller = SpanContext(int(match[1], 16), int(match[2], 16), is_remote=True, trace_flags=flags)
    return caller if caller.is_valid else None


def run_context(caller: SpanContext | None, run_id: str) -> Context:
    """Where a run's span begins: under its caller's, or nowhere; never under what happens to be current."""
    context = set_value(names.RUN_ID, run_id, Context())
    return context if caller is None else set_span_in_context(NonRecordingSpan(caller), context)


def run_ids(run_id: str, attempt: int) -> tuple[int, int]:
    """Trace and span id of one dispatch of a run: the same in every process, so that the next one can link to it."""
    trace = hashlib.sha256(run_id.encode()).digest()
    dispatch = hashlib.sha256(f"{run_id}/{attempt}".encode()).digest()
    return int.from_bytes(trace[:16]), int.from_bytes(dispatch[:8])


def run_links(caller: SpanContext | None, run_id: str, attempt: int) -> list[Link]:
    """What the span of a recovered run points at: its caller's span, and the span of the dispatch before."""
    trace_id, span_id = run_ids(run_id, attempt - 1)
    flags = TraceFlags(TraceFlags.SAMPLED) if caller is None else caller.trace_flags
    trace_id = trace_id if caller is None else caller.trace_id
    previous = SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags)
    links = [Link(previous, {names.LINK: "previous_attempt"})]
    return links if caller is None else [Link(caller, {names.LINK: "caller"}), *links]


def current_ids() -> dict[str, str]:
    """The ids that a log line of the current context carries: run_id, trace_id and span_id, as far as there are."""
    ids: dict[str, str] = {}
    current = get_current()
    run_id = get_value(names.RUN_ID, current)
    if isinstance(run_id, str):
        ids["run_id"] = run_id
    context = get_current_span(current).get_span_context()
    if context.is_valid:
        ids["trace_id"], ids["span_id"] = f"{context.trace_id:032x}", f"{context.span_id:016x}"
    return ids
