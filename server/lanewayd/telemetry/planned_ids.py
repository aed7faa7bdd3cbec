"""Ids of spans: random, but for those that were planned. Imports the SDK, so only setup.py imports it, when needed."""

from opentelemetry.sdk.trace.id_generator import RandomIdGenerator


class PlannedIdGenerator(RandomIdGenerator):
    """Implements spans.PlannedIds. Used on the event loop's thread only: `plan`, then at once the span."""

    def __init__(self) -> None:
        self._planned: tuple[int, int] | None = None

    def plan(self, trace_id: int, span_id: int) -> None:
        """The next span gets these ids; a span with a parent keeps its parent's trace."""
        self._planned = (trace_id, span_id)

    def generate_span_id(self) -> int:
        """The planned id once, then random ones."""
        planned, self._planned = self._planned, None
        return super().generate_span_id() if planned is None else planned[1]

    def generate_trace_id(self) -> int:
        """The planned trace, if its span is still to come."""
        return super().generate_trace_id() if self._planned is None else self._planned[0]
