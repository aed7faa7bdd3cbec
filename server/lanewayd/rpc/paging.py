"""Page sizes and page tokens of all lists. Pure.

A token holds the place after which the next page begins, and a digest over the list, its filters, the tenant and the
store: with any of them changed it is not recognised.
"""

import base64
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from lanewayd.errors import ErrorCode, FieldError
from lanewayd.rpc.limits import MAX_TEXT_BYTES

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 500
_CHECK_BYTES = 8
_MAX_TOKEN_LENGTH = 4096
_BATCH = 50
"""Rows asked of the store at once: a page of large rows must not be in memory whole."""

RowT = TypeVar("RowT")
ItemT = TypeVar("ItemT", bound=Message)


def page_size(asked: int) -> int:
    """How many items a page has at most. Raises FieldError for a negative size."""
    if asked < 0:
        raise FieldError(ErrorCode.FIELD_INVALID, "page_size", "A page size cannot be negative.")
    return min(asked, MAX_PAGE_SIZE) or DEFAULT_PAGE_SIZE


class PageTokens:
    """Makes and reads the tokens of one list with its filters: those of `request`, for one tenant and store."""

    def __init__(self, request: Any, *, tenant: str, store_id: str) -> None:
        filters = type(request)()
        filters.CopyFrom(request)
        filters.ClearField("page_size")
        filters.ClearField("page_token")
        scope = (request.DESCRIPTOR.full_name, tenant, store_id)
        self._scope = repr(scope).encode() + filters.SerializeToString(deterministic=True)

    def token(self, place: str) -> str:
        """The token of the page that begins after `place`."""
        encoded = place.encode()
        return base64.urlsafe_b64encode(self._check(encoded) + encoded).decode().rstrip("=")

    def next_token(self, page: "Page[Any]") -> str:
        """The token of the page after `page`; empty when it is the last."""
        return self.token(page.last_place) if page.has_more else ""

    def place(self, token: str) -> str:
        """What `token` was made of; "" for no token. Raises FieldError (PAGE_TOKEN_INVALID)."""
        if not token:
            return ""
        decoded = _decoded(token)
        encoded = decoded[_CHECK_BYTES:]
        # The second comparison refuses other spellings of the same bytes.
        if decoded[:_CHECK_BYTES] == self._check(encoded) and self.token(encoded.decode()) == token:
            return encoded.decode()
        raise FieldError(
            ErrorCode.PAGE_TOKEN_INVALID,
            "page_token",
            "This is not a token of this list with these filters; begin again without one.",
        )

    def _check(self, encoded: bytes) -> bytes:
        return hashlib.blake2b(self._scope + b"\0" + encoded, digest_size=_CHECK_BYTES).digest()


def _decoded(token: str) -> bytes:
    if len(token) > _MAX_TOKEN_LENGTH:
        return b""
    try:
        return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        return b""


class Page(Generic[ItemT]):
    """The items of one answer. `last_place` is where it ended; `has_more` = another page follows."""

    def __init__(self, items: list[ItemT], last_place: str, *, has_more: bool) -> None:
        self.items = items
        self.last_place = last_place
        self.has_more = has_more


async def read_page(
    read: Callable[[str, int], Awaitable[Sequence[RowT]]],
    *,
    start: str,
    size: int,
    place_of: Callable[[RowT], str],
    convert: Callable[[RowT], ItemT],
) -> Page[ItemT]:
    """Up to `size` items after the place `start`, fewer when they would not fit into one message, at least one.

    `read(place, limit)` gives the rows after `place`; fewer than `limit` means that no more follow.
    """
    items: list[ItemT] = []
    place = start
    left_bytes = MAX_TEXT_BYTES
    while True:
        wanted = min(_BATCH, size - len(items) + 1)
        rows = await read(place, wanted)
        for row in rows:
            if len(items) == size:
                return Page(items, place, has_more=True)
            item = convert(row)
            left_bytes -= item.ByteSize() + 8
            if items and left_bytes < 0:
                return Page(items, place, has_more=True)
            items.append(item)
            place = place_of(row)
        if len(rows) < wanted:
            return Page(items, place, has_more=False)


def slice_by_name(items: Sequence[tuple[str, ItemT]], *, after: str, size: int) -> Page[ItemT]:
    """As `read_page`, for a short list that is at hand: (name, item) in any order, answered by name."""
    chosen: list[ItemT] = []
    place = after
    left_bytes = MAX_TEXT_BYTES
    for name, item in sorted(items, key=lambda pair: pair[0]):
        if name <= after:
            continue
        left_bytes -= item.ByteSize() + 8
        if len(chosen) == size or (chosen and left_bytes < 0):
            return Page(chosen, place, has_more=True)
        chosen.append(item)
        place = name
    return Page(chosen, place, has_more=False)
