"""Cursors: a commit position with the store it belongs to, as text that callers give back. Pure.

Form: URL-safe base64 of version, a digest of the store's id, the position and check digits, 28 characters. The check
digits tell a damaged or invented cursor, the digest one of another store.
"""

import base64
import binascii
import hashlib
import struct

from lanewayd.errors import ErrorCode, FieldError

_VERSION = 1
_BODY = struct.Struct(">B8sQ")
_CHECK = struct.Struct(">I")
_TEXT_LENGTH = (_BODY.size + _CHECK.size) * 4 // 3
_MAX_POSITION = 2**63 - 1


def cursor_text(store_id: str, position: int) -> str:
    """The cursor of `position` (0 to 2^63 - 1) in the store `store_id`."""
    body = _BODY.pack(_VERSION, _digest(store_id), position)
    return base64.urlsafe_b64encode(body + _CHECK.pack(binascii.crc32(body))).decode()


def cursor_position(text: str, store_id: str, *, field: str = "cursor") -> int:
    """The position in `text`. Raises FieldError (FIELD_INVALID) when it is malformed or of another store."""
    try:
        decoded = base64.b64decode(text, altchars=b"-_", validate=True)
    except ValueError:
        decoded = b""
    if len(text) != _TEXT_LENGTH or len(decoded) != _BODY.size + _CHECK.size:
        raise FieldError(ErrorCode.FIELD_INVALID, field, "This is not a cursor that the server made.")
    body, check = decoded[: _BODY.size], decoded[_BODY.size :]
    version, digest, position = _BODY.unpack(body)
    if check != _CHECK.pack(binascii.crc32(body)) or version != _VERSION or position > _MAX_POSITION:
        raise FieldError(ErrorCode.FIELD_INVALID, field, "This is not a cursor that the server made.")
    if digest != _digest(store_id):
        raise FieldError(ErrorCode.FIELD_INVALID, field, "This cursor belongs to another store.")
    return int(position)


def _digest(store_id: str) -> bytes:
    return hashlib.blake2b(store_id.encode(), digest_size=8).digest()
