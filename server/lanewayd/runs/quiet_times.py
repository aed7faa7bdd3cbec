"""Holds messages that are collected until their session has been quiet for a while (spec 02, R-2.57)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lanewayd.clock import Clock, TimerHandle
from lanewayd.queueing.inbox import QuietWindow
from lanewayd.runs.lanes import SessionId


@dataclass(slots=True)
class _Held:
    window: QuietWindow
    timer: TimerHandle
    run_ids: set[str] = field(default_factory=set)


class QuietTimes:
    """Owner of one timer for each session with held messages, and of none for any other."""

    def __init__(self, clock: Clock, *, let_go: Callable[[Sequence[str]], None]) -> None:
        """`let_go` hears which runs need not wait any longer."""
        self._clock = clock
        self._let_go = let_go
        self._held: dict[SessionId, _Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, session_id: SessionId, run_id: str, quiet_s: float) -> None:
        """A message came that is collected: the session's quiet time begins again, as long as the last one asks."""
        now_s = self._clock.monotonic()
        held = self._held.get(session_id)
        window = held.window.with_message(now_s) if held is not None else QuietWindow(now_s, now_s)
        run_ids = held.run_ids if held is not None else set()
        if held is not None:
            held.timer.cancel()
        delay_s = max(0.0, window.ends_at(quiet_s) - now_s)
        timer = self._clock.call_later(delay_s, lambda: self._end(session_id))
        self._held[session_id] = _Held(window, timer, run_ids | {run_id})

    def forget(self, session_id: SessionId, run_id: str) -> None:
        """The run does not wait any more; harmless for one that is not held."""
        held = self._held.get(session_id)
        if held is None or run_id not in held.run_ids:
            return
        held.run_ids.discard(run_id)
        if not held.run_ids:
            held.timer.cancel()
            del self._held[session_id]

    def _end(self, session_id: SessionId) -> None:
        held = self._held.pop(session_id, None)
        if held is not None:
            self._let_go(sorted(held.run_ids))
