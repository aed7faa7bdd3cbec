"""What every decoder does alike: bytes in, values to the dialect, one terminal event last. Pure."""

from typing import Protocol

from lanewayd.messages import AssistantMessage, RunError
from lanewayd.providers.failures import Fault, failed_by, run_error
from lanewayd.providers.interface import Done, Failed, StreamEvent
from lanewayd.providers.json_events import JsonEvent, JsonEvents, ResponseRefused

_HTTP_OK = 200


class Interpreter(Protocol):
    """A dialect's reading of the values of one response; it owns the message that they make."""

    @property
    def is_complete(self) -> bool:
        """As `Decoder.is_complete`."""

    def take(self, event: JsonEvent, into: list[StreamEvent]) -> None:
        """Append the events of one value, the Done as soon as it is certain; nothing is asked after it.

        Raises ResponseRefused; what was appended before counts.
        """

    def finish(self, into: list[StreamEvent]) -> None:
        """The body has ended without a Done: append it with what was held back, or raise ResponseRefused."""

    def partial(self) -> AssistantMessage:
        """What was emitted so far, for a Failed: without tool calls, stop reason ERROR."""


class StreamDecoder:
    """Implements providers.interface.Decoder for the values of `reader` as `interpreter` takes them."""

    def __init__(self, reader: JsonEvents, interpreter: Interpreter, *, provider: str, model: str) -> None:
        self._reader = reader
        self._interpreter = interpreter
        self._provider = provider
        self._model = model
        self._is_finished = False

    @property
    def is_finished(self) -> bool:
        return self._is_finished

    @property
    def is_complete(self) -> bool:
        return self._interpreter.is_complete

    @property
    def progress(self) -> int:
        return self._reader.count

    def feed(self, data: bytes) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if self._is_finished:
            return events
        take = self._interpreter.take
        try:
            for event in self._reader.feed(data):
                take(event, events)
                if events and type(events[-1]) is Done:
                    self._is_finished = True
                    break
        except ResponseRefused as refused:
            events.append(self._refuse(refused.cause))
        return events

    def end(self) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if self._is_finished:
            return events
        try:
            for event in self._reader.end():
                if self._take(event, events):
                    return events
            self._interpreter.finish(events)
            self._is_finished = True
        except ResponseRefused as refused:
            events.append(self._refuse(refused.cause))
        return events

    def fail(self, error: RunError, *, is_transient: bool) -> Failed:
        self._is_finished = True
        return Failed(error, self._interpreter.partial(), is_transient=is_transient)

    def _take(self, event: JsonEvent, events: list[StreamEvent]) -> bool:
        """Whether the event was the last one."""
        self._interpreter.take(event, events)
        self._is_finished = bool(events) and isinstance(events[-1], Done)
        return self._is_finished

    def _refuse(self, cause: Fault) -> Failed:
        error = run_error(cause, provider=self._provider, model=self._model, http_status=_HTTP_OK)
        return failed_by(cause, self.fail(error, is_transient=cause.is_transient))
