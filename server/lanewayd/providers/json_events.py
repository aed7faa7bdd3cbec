"""Response bytes -> the JSON values in them, whatever frames these: server-sent events or lines. Incremental, pure.

A body of server-sent events that begins like JSON is read as one value, when it has ended: services answer so with an
error, and some do although a stream was asked for.
"""

import json
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from lanewayd.errors import ErrorCode
from lanewayd.providers.failures import Fault, fault
from lanewayd.providers.redaction import excerpt
from lanewayd.providers.sse import MAX_EVENT_BYTES, SseParser

MAX_BODY_BYTES = 10_000_000
_MAX_BLANK_BYTES = 256_000
# So much of a body that is no stream of events is kept for the error.
_HEAD_BYTES = 512
_MAX_EXCERPT_CHARS = 4096
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_JSON = json.JSONDecoder()
# Events come by the thousand: so a named tuple is made in a third of the time.
_new = tuple.__new__

Framing = Literal["sse", "ndjson"]


class ResponseRefused(Exception):
    """The response cannot be decoded any further."""

    def __init__(self, cause: Fault) -> None:
        super().__init__(cause.what)
        self.cause = cause


class JsonEvent(NamedTuple):
    """One value of a response. `name` is the type of the server-sent event, mostly empty."""

    value: Any
    name: str = ""
    is_body: bool = False
    """The value is the whole body."""
    is_end_mark: bool = False
    """The event is `[DONE]`; there is no value."""


class JsonEvents:
    """Owns the unread bytes of one response, at most about 10 MB."""

    def __init__(self, framing: Framing = "sse") -> None:
        self._sse = SseParser() if framing == "sse" else None
        self._lines = _Lines()
        self._body: list[bytes] | None = None
        self._body_bytes = 0
        self._head = b""
        self._is_recognised = False
        self.count = 0
        """Values so far."""

    def feed(self, data: bytes) -> Iterator[JsonEvent]:
        """The values that `data` completes, one by one. Raises ResponseRefused at the one that cannot be read."""
        if not self._is_recognised:
            data = self._head = self._head + data
            if not self._recognise(data):
                return
            self._head = data[:_HEAD_BYTES]
        elif not self.count and len(self._head) < _HEAD_BYTES:
            self._head += data[:_HEAD_BYTES]
        if self._body is not None:
            self._body_bytes += len(data)
            if self._body_bytes > MAX_BODY_BYTES:
                raise ResponseRefused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, "the answer is too large"))
            self._body.append(data)
            return
        yield from self._framed(data)

    def end(self) -> Iterator[JsonEvent]:
        """What the end of the body completes. A value that it cuts is none. Raises ResponseRefused, also for a body
        that was no stream of events at all."""
        if self._body is not None:
            text = b"".join(self._body).removeprefix(_BOM).strip(_BLANK).decode("utf-8", "replace")
            self.count += 1
            yield JsonEvent(_parsed(text), is_body=True)
            return
        if not self._is_recognised:  # shorter than a mark of byte order, or blank
            self._is_recognised = True
            yield from self._framed(self._head)
        for name, text in self._rest():
            try:
                event = _event(name, text)
            except ResponseRefused:
                continue
            if event is not None:
                self.count += 1
                yield event
        if not self.count and self._head.strip() and not (self._sse and self._sse.is_recognised):
            said = excerpt(self._head[:_HEAD_BYTES].decode("utf-8", "replace"))
            raise ResponseRefused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, "the answer is no event stream", said=said))

    def _recognise(self, head: bytes) -> bool:
        """Whether the body's begin tells what it is."""
        begin = head.removeprefix(_BOM).lstrip(_BLANK)
        if (not begin and len(head) < _MAX_BLANK_BYTES) or _BOM.startswith(head):
            return False
        if self._sse is not None and begin.startswith((b"{", b"[")):
            self._body = []
        self._is_recognised = True
        return True

    def _framed(self, data: bytes) -> Iterator[JsonEvent]:
        if self._sse is not None:
            for name, text in self._sse.feed(data):
                event = _event(name, text)
                if event is not None:
                    self.count += 1
                    yield event
        else:
            for text in self._lines.feed(data):
                event = _event("", text)
                if event is not None:
                    self.count += 1
                    yield event
        if (self._sse or self._lines).is_overflowed:
            raise ResponseRefused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, "an event of the stream is too large"))

    def _rest(self) -> list[tuple[str, str]]:
        if self._sse is not None:
            return self._sse.end()
        return [("", line) for line in self._lines.end()]


class _Lines:
    """Owns the unfinished line; one that is longer than an event may be sets `is_overflowed`."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._bytes = 0
        self.is_overflowed = False

    def feed(self, data: bytes) -> list[str]:
        lines: list[str] = []
        *whole, rest = data.split(b"\n")
        for line in whole:
            if not self._parts and line.startswith(b"{") and len(line) <= MAX_EVENT_BYTES:
                lines.append(line.decode("utf-8", "replace"))
                continue
            self._add(line)
            if self.is_overflowed:
                return lines
            lines.append(self._take())
        self._add(rest)
        return lines

    def end(self) -> list[str]:
        return [] if self.is_overflowed else [self._take()]

    def _add(self, part: bytes) -> None:
        self._bytes += len(part)
        self.is_overflowed = self.is_overflowed or self._bytes > MAX_EVENT_BYTES
        if part and not self.is_overflowed:
            self._parts.append(part)

    def _take(self) -> str:
        line = b"".join(self._parts).removeprefix(_BOM).strip(_BLANK)
        self._parts.clear()
        self._bytes = 0
        return line.decode("utf-8", "replace")


def _event(name: str, text: str) -> JsonEvent | None:
    """The event with this data; None for a blank one."""
    try:
        value, end = _JSON.raw_decode(text)
        if end == len(text):
            return _new(JsonEvent, (value, name, False, False))
    except (ValueError, RecursionError):
        pass  # what is wrong with it is looked at below
    text = text.strip()
    if not text:
        return None
    return JsonEvent(None, name, is_end_mark=True) if text == "[DONE]" else JsonEvent(_parsed(text), name)


def _parsed(text: str) -> Any:
    try:
        value, end = _JSON.raw_decode(text)
        if end == len(text):
            return value
        raise ValueError("more than one value")
    except (ValueError, RecursionError):
        what = "the answer holds data that is no JSON"
        said = excerpt(text[:_MAX_EXCERPT_CHARS])
        raise ResponseRefused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, what, said=said)) from None
