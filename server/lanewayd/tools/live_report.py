"""Telling watchers what a tool has produced so far, often enough and not too often."""

from collections.abc import Callable

from lanewayd.clock import Clock, TimerHandle

REPORTED_CHARS = 8_000
_INTERVAL_S = 0.25


class LiveReport:
    """Calls `send` with the present text: at once for the first change, then at most every 250 ms. One call's own."""

    def __init__(self, *, clock: Clock, render: Callable[[], str], send: Callable[[str], None]) -> None:
        self._clock = clock
        self._render = render
        self._send = send
        self._timer: TimerHandle | None = None
        self._not_before = clock.monotonic()
        self._last_sent = ""

    def changed(self) -> None:
        """There is something new."""
        if self._timer is not None:
            return
        delay_s = self._not_before - self._clock.monotonic()
        if delay_s <= 0:
            self.send_now()
        else:
            self._timer = self._clock.call_later(delay_s, self.send_now)

    def send_now(self) -> None:
        """Send the present text unless it was the last one sent."""
        self.close()
        self._not_before = self._clock.monotonic() + _INTERVAL_S
        text = self._render()
        if text and text != self._last_sent:
            self._last_sent = text
            self._send(text)

    def close(self) -> None:
        """Send nothing later."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
