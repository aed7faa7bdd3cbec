"""Spans: the caller's context, ids that survive a process, and one end for each span, whatever the block does."""

import asyncio
import contextlib

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracer, StatusCode, get_current_span

from lanewayd.telemetry.planned_ids import PlannedIdGenerator
from lanewayd.telemetry.spans import caller_of, current_ids, run_context, run_ids, run_links, span

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Recorded:
    """A tracer and what it was told."""

    def __init__(self) -> None:
        self.ids = PlannedIdGenerator()
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(id_generator=self.ids, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = provider.get_tracer("test")

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()


def test_the_callers_span_is_read_with_its_flags() -> None:
    caller = caller_of(TRACEPARENT)
    assert caller is not None
    assert (f"{caller.trace_id:032x}", f"{caller.span_id:016x}") == tuple(TRACEPARENT.split("-")[1:3])
    assert caller.is_remote
    assert caller.trace_flags.sampled
    unsampled = caller_of(f"{TRACEPARENT[:-1]}0")
    assert unsampled is not None
    assert not unsampled.trace_flags.sampled
    assert caller_of(f"cc{TRACEPARENT[2:]}-what-comes-later") is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        f"ff{TRACEPARENT[2:]}",
        TRACEPARENT.upper(),
        TRACEPARENT.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
        TRACEPARENT.replace("b7ad6b7169203331", "0" * 16),
        f" {TRACEPARENT}",
        f"{TRACEPARENT}x",
    ],
)
def test_what_is_no_trace_context_is_none(text: str) -> None:
    assert caller_of(text) is None


def test_ids_of_a_dispatch_are_the_same_in_every_process_and_differ_by_attempt() -> None:
    (first_trace, first_span), (second_trace, second_span) = run_ids("run_1", 1), run_ids("run_1", 2)
    assert first_trace == second_trace
    assert first_span != second_span
    assert run_ids("run_2", 1)[0] != first_trace
    assert 0 < first_span < 1 << 64
    assert 0 < first_trace < 1 << 128


def test_a_planned_span_has_its_ids_and_the_next_one_has_others() -> None:
    recorded = Recorded()
    for _ in range(2):
        recorded.ids.plan(*run_ids("run_1", 1))
        recorded.tracer.start_span("planned", context=Context()).end()
        recorded.tracer.start_span("other", context=Context()).end()
    planned, other, again, _ = (one.context for one in recorded.spans)
    assert planned is not None
    assert other is not None
    assert (planned.trace_id, planned.span_id) == run_ids("run_1", 1)
    assert again == planned
    assert (other.trace_id, other.span_id) != run_ids("run_1", 1)


def test_a_planned_span_under_a_caller_keeps_the_callers_trace() -> None:
    recorded, caller = Recorded(), caller_of(TRACEPARENT)
    assert caller is not None
    recorded.ids.plan(*run_ids("run_1", 1))
    recorded.tracer.start_span("run", context=run_context(caller, "run_1")).end()
    recorded.tracer.start_span("other", context=Context()).end()
    run, other = (one.context for one in recorded.spans)
    assert run is not None
    assert other is not None
    assert (run.trace_id, run.span_id) == (caller.trace_id, run_ids("run_1", 1)[1])
    assert other.trace_id != run_ids("run_1", 1)[0]


def test_a_recovered_run_is_linked_to_its_caller_and_its_last_dispatch() -> None:
    caller = caller_of(TRACEPARENT)
    assert caller is not None
    to_caller, to_previous = run_links(caller, "run_1", 3)
    assert to_caller.context == caller
    assert (to_previous.context.trace_id, to_previous.context.span_id) == (caller.trace_id, run_ids("run_1", 2)[1])
    (alone,) = run_links(None, "run_1", 3)
    assert (alone.context.trace_id, alone.context.span_id) == run_ids("run_1", 2)


def test_a_span_is_current_inside_its_block_only_and_its_ids_go_to_the_logs() -> None:
    recorded = Recorded()
    assert current_ids() == {}
    with span(recorded.tracer, "run", parent=run_context(None, "run_1")) as run:
        ids = current_ids()
        assert ids["run_id"] == "run_1"
        assert ids["span_id"] == f"{run.get_span_context().span_id:016x}"
    assert current_ids() == {}
    assert not get_current_span().get_span_context().is_valid


def test_without_an_sdk_the_logs_still_have_the_run_and_the_callers_trace() -> None:
    with span(NoOpTracer(), "run", parent=run_context(caller_of(TRACEPARENT), "run_1")):
        assert current_ids()["trace_id"] == TRACEPARENT.split("-")[1]
    with span(NoOpTracer(), "run", parent=run_context(None, "run_1")):
        assert current_ids() == {"run_id": "run_1"}


def test_what_fails_is_named_by_its_type_and_ends_once() -> None:
    recorded = Recorded()
    with contextlib.suppress(ValueError), span(recorded.tracer, "failing", parent=Context()):
        raise ValueError("canary")
    (failed,) = recorded.spans
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, None)
    assert dict(failed.attributes or {}) == {"error.type": "ValueError"}
    assert not failed.events


async def test_what_is_cancelled_is_marked_and_no_error() -> None:
    recorded, is_inside = Recorded(), asyncio.Event()

    async def work() -> None:
        with span(recorded.tracer, "cut", parent=Context()):
            is_inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await is_inside.wait()
    task.cancel()
    await asyncio.wait({task})
    (cut,) = recorded.spans
    assert cut.status.status_code is StatusCode.UNSET
    assert dict(cut.attributes or {}) == {"laneway.cancelled": True}
