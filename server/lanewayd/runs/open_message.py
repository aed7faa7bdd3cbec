"""The assistant message that a run is saying: its id, its text so far, what of it is held back for merging (D-4)."""

import logging
from collections.abc import Callable, Sequence

from lanewayd.clock import Clock, TimerHandle
from lanewayd.errors import ClaimLost
from lanewayd.events import AssistantDelta, EventPayload, ReasoningDelta
from lanewayd.runs.deltas import DeltaMerger, Piece
from lanewayd.runs.ids import Ids
from lanewayd.runs.runlog import RunLog

logger = logging.getLogger(__name__)

Emit = Callable[[list[EventPayload], str | None], None]


class OpenMessage:
    """Owner of the message until `next`. What is due goes to `emit`, with the id to note in the run's row.

    The id is given once for a message, None from then on: each mention is a write to that row.
    """

    def __init__(self, *, log: RunLog, clock: Clock, ids: Ids, interval_s: float, emit: Emit) -> None:
        self._log = log
        self._clock = clock
        self._ids = ids
        self._interval_s = interval_s
        self._emit = emit
        self._timer: TimerHandle | None = None
        self._is_closed = False
        self._begin()
        log.on_caught_up = self._caught_up

    @property
    def message_id(self) -> str:
        """Of the message in progress."""
        return self._message_id

    @property
    def text(self) -> str:
        """What it says so far, held back or not."""
        return "".join(self._text)

    @property
    def is_begun(self) -> bool:
        """The model has said something of it."""
        return self._merger.has_shown or bool(self._text)

    def show(self, is_reasoning: bool, content_index: int, text: str) -> None:
        """More of it; what is due is emitted."""
        if not is_reasoning:
            self._text.append(text)
        now_s = self._clock.monotonic()
        holds_on = self._log.is_behind and self._interval_s > 0
        self._emit_pieces(self._merger.add(is_reasoning, content_index, text, now_s, holds_on=holds_on))
        if not holds_on:
            self._time_flush(now_s)

    def flush(self) -> None:
        """Emit what is held back."""
        self._emit_pieces(self._merger.flush(self._clock.monotonic()))

    def rest(self) -> list[EventPayload]:
        """What is held back, for the change that ends the run."""
        return self._events(self._merger.flush(self._clock.monotonic()))

    def void(self) -> str:
        """Drop it; its id if anything of it was shown, else ""."""
        message_id = self._message_id if self._merger.has_shown else ""
        self.next()
        return message_id

    def next(self) -> None:
        """The message is over; another one begins."""
        self.stop_timer()
        self._begin()

    def close(self) -> None:
        """Nothing is emitted any more."""
        self._is_closed = True
        self.stop_timer()

    def stop_timer(self) -> None:
        """What is held back stays held until somebody asks for it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        self._message_id = self._ids.message()
        self._is_noted = False
        self._merger = DeltaMerger(self._interval_s)
        self._text: list[str] = []

    def _time_flush(self, now_s: float) -> None:
        """Held text is shown when it is due, or when the log has caught up, whichever is later."""
        if self._timer is None and (due_at := self._merger.due_at) is not None:
            self._timer = self._clock.call_later(max(0.0, due_at - now_s), self._flush_due)

    def _flush_due(self) -> None:
        self._timer = None
        if self._log.is_behind:
            return  # the log tells when it has caught up
        try:
            self.flush()
        except ClaimLost:
            logger.debug("held text of an overtaken run dropped", extra={"message_id": self._message_id})

    def _caught_up(self) -> None:
        if not self._is_closed:
            self._time_flush(self._clock.monotonic())

    def _emit_pieces(self, pieces: Sequence[Piece]) -> None:
        if pieces:
            open_message_id = None if self._is_noted else self._message_id
            self._is_noted = True
            self._emit(self._events(pieces), open_message_id)

    def _events(self, pieces: Sequence[Piece]) -> list[EventPayload]:
        return [
            (ReasoningDelta if piece.is_reasoning else AssistantDelta)(
                self._message_id, piece.content_index, piece.offset, piece.text
            )
            for piece in pieces
        ]
