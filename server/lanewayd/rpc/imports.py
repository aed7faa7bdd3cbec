"""What bounds imports: how many are open, and how large one is, checked while it comes in."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from laneway.v1 import session_pb2
from lanewayd.errors import ErrorCode, FieldError, LanewayError
from lanewayd.rpc.limits import Limits
from lanewayd.rpc.wire_text import size_bytes


class ImportSlots:
    """Counts the open imports of each tenant, because each one is in memory until it is complete."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def taken(self, tenant: str) -> Iterator[None]:
        """One import is open. Raises TENANT_LIMIT."""
        if self._open[tenant] >= self._most:
            raise LanewayError(
                ErrorCode.TENANT_LIMIT, f"{self._most} imports are open already; try again when one is done"
            )
        self._open[tenant] += 1
        try:
            yield
        finally:
            self._open[tenant] -= 1
            if not self._open[tenant]:
                del self._open[tenant]


async def import_lines(
    first: session_pb2.ImportSessionRequest, rest: AsyncIterator[session_pb2.ImportSessionRequest], limits: Limits
) -> AsyncIterator[str]:
    """The lines of an import, put together from their pieces. Raises FieldError (FIELD_INVALID)."""
    size = _Size(limits)
    pieces: list[str] = []
    request: session_pb2.ImportSessionRequest | None = first
    while request is not None:
        size.add(request)
        pieces.append(request.line)
        if not request.line_continues:
            yield "".join(pieces)
            pieces.clear()
        request = await anext(rest, None)
        if request is not None and request.session_key:
            raise FieldError(ErrorCode.FIELD_INVALID, "session_key", "session_key stands in the first message only.")
    if pieces:
        raise FieldError(ErrorCode.FIELD_INVALID, "line", f"line {size.lines + 1}: it is not complete")


class _Size:
    """How much has come in. Raises FieldError as soon as it is too much."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.lines = 0
        self._all_bytes = 0
        self._line_bytes = 0

    def add(self, request: session_pb2.ImportSessionRequest) -> None:
        """The next piece."""
        piece_bytes = size_bytes(request.line)
        self._all_bytes += piece_bytes
        self._line_bytes += piece_bytes
        place = f"line {self.lines + 1}"
        if self._line_bytes > self._limits.import_line_bytes:
            raise _too_large(f"{place}: a line has at most {self._limits.import_line_bytes:,} bytes")
        if self._all_bytes > self._limits.import_bytes:
            raise _too_large(f"{place}: an import has at most {self._limits.import_bytes:,} bytes")
        if self.lines >= self._limits.import_lines:
            raise _too_large(f"{place}: an import has at most {self._limits.import_lines:,} lines")
        if not request.line_continues:
            self.lines += 1
            self._line_bytes = 0


def _too_large(text: str) -> FieldError:
    return FieldError(ErrorCode.FIELD_INVALID, "line", text)
