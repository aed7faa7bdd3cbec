"""Whether a GGUF file is whole, as far as its own header tells: a download that broke off is the usual damage.

Source: github.com/ggml-org/ggml, docs/gguf.md, versions 2 and 3. What this does not know it does not judge.
"""

import os
import struct
from pathlib import Path
from typing import BinaryIO

MAGIC = b"GGUF"

_KNOWN_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value of each type of fixed size."""
_ALIGNMENT_KEY, _UINT32 = b"general.alignment", 4
_DEFAULT_ALIGNMENT = 32
_SKIP_BYTES = 1 << 20
_BLOCKS = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    24: (1, 1),
    25: (1, 2),
    26: (1, 4),
    27: (1, 8),
    28: (1, 8),
    30: (1, 2),
}
"""Of the usual types of tensors: weights and bytes of a block. Others count as empty, so that nothing is claimed."""


def damage_of(path: Path) -> str:
    """What is wrong with a file, for people; "" for nothing that shows. Reads the header only. Raises OSError."""
    size_bytes = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return "is no GGUF file"
        try:
            needed_bytes = _Header(file).needed_bytes()
        except EOFError:
            return f"is damaged: it ends after {size_bytes:,} bytes, in the middle of its header"
        except _UnknownForm:
            return ""
    if needed_bytes > size_bytes:
        return f"is damaged: it has {size_bytes:,} bytes and should have {needed_bytes:,}"
    return ""


class _UnknownForm(Exception):
    """A version or a type that this does not know, or a number that no file has."""


class _Header:
    """Reads on behind the magic."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._alignment = _DEFAULT_ALIGNMENT

    def needed_bytes(self) -> int:
        """How large the file must be. Raises EOFError, _UnknownForm."""
        if self._number("<I") not in _KNOWN_VERSIONS:
            raise _UnknownForm
        tensors, values = self._number("<Q"), self._number("<Q")
        for _ in range(values):
            self._read_value()
        ends = [self._tensor_end() for _ in range(tensors)]
        header_bytes = self._file.tell()
        return header_bytes + -header_bytes % self._alignment + max(ends, default=0)

    def _read_value(self) -> None:
        key, kind = self._string(), self._number("<I")
        if key == _ALIGNMENT_KEY and kind == _UINT32:
            self._alignment = self._number("<I") or _DEFAULT_ALIGNMENT
        else:
            self._skip(kind, 1)

    def _skip(self, kind: int, count: int) -> None:
        if kind in _SIZES:
            self._pass_over(_SIZES[kind] * count)
        elif kind == _STRING:
            for _ in range(count):
                self._pass_over(self._number("<Q"))
        elif kind == _ARRAY:
            for _ in range(count):
                self._skip(self._number("<I"), self._number("<Q"))
        else:
            raise _UnknownForm

    def _tensor_end(self) -> int:
        """Where a tensor ends, from where the tensors begin."""
        self._string()
        weights = 1
        for _ in range(self._number("<I")):
            weights *= self._number("<Q")
        per_block, block_bytes = _BLOCKS.get(self._number("<I"), (1, 0))
        return self._number("<Q") + weights // per_block * block_bytes

    def _string(self) -> bytes:
        length = self._number("<Q")
        if length > _SKIP_BYTES:
            raise _UnknownForm
        return self._read(length)

    def _number(self, form: str) -> int:
        number: int = struct.unpack(form, self._read(struct.calcsize(form)))[0]
        return number

    def _read(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def _pass_over(self, count: int) -> None:
        if count <= _SKIP_BYTES:
            self._read(count)
        elif self._file.seek(count, os.SEEK_CUR) > os.fstat(self._file.fileno()).st_size:
            raise EOFError
