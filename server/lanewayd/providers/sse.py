"""Bytes -> server-sent events, incremental. Pure. Source: WHATWG HTML, 9.2.6, "Interpreting an event stream".

Lines end at CR, LF or CRLF and nowhere else: U+2028, U+0085 and their like are text. Fields `id` and `retry` and
comments produce nothing, as does an event whose data is empty.
"""

MAX_EVENT_BYTES = 10_000_000
_FIELDS = frozenset((b"", b"data", b"event", b"id", b"retry"))
_PLAIN_PREFIX = b"data: "
_PLAIN_PREFIX_BYTES = len(_PLAIN_PREFIX)
_PLAIN_TYPE = b"event: "
_PLAIN_TYPE_BYTES = len(_PLAIN_TYPE)
_BOM = b"\xef\xbb\xbf"


SseEvent = tuple[str, str]
"""One dispatched event: its type, empty when the stream names none, and its data. Bare, because they are many."""


class SseParser:
    """Owns the unfinished line and event of one response.

    Memory is bounded by `max_event_bytes`: a longer line or event sets `is_overflowed`, and nothing follows it.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._line_parts: list[bytes] = []
        self._line_bytes = 0
        self._is_first_line = True
        self._skips_lf = False
        self._event = ""
        self._data: list[bytes] = []
        self._data_bytes = 0
        self.is_overflowed = False
        self.is_recognised = False
        """A line was a comment or a field of the format, not just any text."""

    def feed(self, data: bytes) -> list[SseEvent]:
        """Events that `data` completes; those before an overflow are still returned."""
        events: list[SseEvent] = []
        if b"\r" in data or self._skips_lf:
            self._feed_lines(data, events)
            return events
        # Nearly all events are one line of data, at most one with their type before it, and a blank line: cut there,
        # and look at lines only where it is not so.
        *blocks, rest = data.split(b"\n\n")
        is_between = self._is_between_events()
        for block in blocks:
            if is_between and (event := self._plain(block)):
                events.append(event)
            else:
                self._feed_lines(block + b"\n\n", events)
                is_between = self._is_between_events()
        if rest:
            self._feed_lines(rest, events)
        return events

    def _is_between_events(self) -> bool:
        """Nothing is unfinished, and the stream has shown that it is one."""
        return self.is_recognised and not (self._line_parts or self._data or self._event or self.is_overflowed)

    def _plain(self, block: bytes) -> SseEvent | None:
        """The event, if `block` is a whole one of the usual form."""
        name, begin = "", _PLAIN_PREFIX_BYTES
        if not block.startswith(_PLAIN_PREFIX):
            if not block.startswith(_PLAIN_TYPE):
                return None
            start = block.find(b"\n") + 1
            if not start or not block.startswith(_PLAIN_PREFIX, start):
                return None
            name, begin = block[_PLAIN_TYPE_BYTES : start - 1].decode("utf-8", "replace"), start + begin
        if block.find(b"\n", begin) >= 0 or not begin < len(block) < self._max_event_bytes:
            return None
        return name, block[begin:].decode("utf-8", "replace")

    def _feed_lines(self, data: bytes, events: list[SseEvent]) -> None:
        if self._skips_lf and data:
            # The CR at the end of the last piece and this LF are one line end.
            data = data.removeprefix(b"\n")
            self._skips_lf = False
        if data.endswith(b"\r"):
            self._skips_lf = True
        # On bytes, splitlines knows exactly the three line ends of event streams.
        for line in data.splitlines(keepends=True):
            if self.is_overflowed:
                break
            is_whole = line.endswith((b"\n", b"\r"))
            self._line_bytes += len(line)
            self._line_parts.append(line)
            if self._line_bytes > self._max_event_bytes:
                self.is_overflowed = True
            elif is_whole:
                self._end_line(events)

    def end(self) -> list[SseEvent]:
        """The event that the end of the body leaves unfinished, if it has data.

        The standard drops it. Servers exist that end their last event with less than a blank line.
        """
        events: list[SseEvent] = []
        if not self.is_overflowed:
            self._end_line(events)
            self._dispatch(events)
        return events

    def _end_line(self, events: list[SseEvent]) -> None:
        line = b"".join(self._line_parts).rstrip(b"\r\n")
        self._line_parts.clear()
        self._line_bytes = 0
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        self.is_recognised = self.is_recognised or name in _FIELDS
        if name == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + 1
            if self._data_bytes > self._max_event_bytes:
                self.is_overflowed = True
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")

    def _dispatch(self, events: list[SseEvent]) -> None:
        data = b"\n".join(self._data)
        if data:
            events.append((self._event, data.decode("utf-8", "replace")))
        self._event = ""
        self._data.clear()
        self._data_bytes = 0
