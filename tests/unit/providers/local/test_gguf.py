"""Whether a GGUF file is whole, by its header."""

import struct
from pathlib import Path

import pytest

from lanewayd.providers.local.gguf import damage_of


def text(content: bytes) -> bytes:
    return struct.pack("<Q", len(content)) + content


def value(key: bytes, kind: int, content: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + content


def tensor(name: bytes, dimensions: tuple[int, ...], kind: int, offset: int) -> bytes:
    return text(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, kind, offset)


VALUES = [
    value(b"general.name", 8, text(b"small")),
    value(b"general.alignment", 4, struct.pack("<I", 64)),
    value(b"words", 9, struct.pack("<IQ", 8, 2) + text(b"a") + text(b"bc")),
    value(b"scores", 9, struct.pack("<IQ", 6, 3) + bytes(12)),
]


def header(version: int = 3, kind: int = 0) -> bytes:
    """Two tensors: 8 floats, and 64 weights in two blocks of 18 bytes (or of another kind)."""
    tensors = [tensor(b"first", (8,), 0, 0), tensor(b"second", (32, 2), kind or 2, 64)]
    return b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(VALUES)) + b"".join([*VALUES, *tensors])


def whole(version: int = 3) -> bytes:
    head = header(version)
    return head + bytes(-len(head) % 64) + bytes(64 + 36)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


@pytest.mark.parametrize("version", [2, 3])
def test_a_whole_file_has_no_damage(path: Path, version: int) -> None:
    path.write_bytes(whole(version))
    assert damage_of(path) == ""


def test_a_file_that_lacks_its_last_byte_is_damaged(path: Path) -> None:
    path.write_bytes(whole()[:-1])
    size = len(whole())
    assert damage_of(path) == f"is damaged: it has {size - 1:,} bytes and should have {size:,}"


def test_a_file_cut_anywhere_in_its_header_is_damaged(path: Path) -> None:
    for end in range(4, len(header())):
        path.write_bytes(header()[:end])
        assert "in the middle of its header" in damage_of(path), end


@pytest.mark.parametrize("content", [b"", b"GG", b"no model"])
def test_what_does_not_begin_as_one_is_none(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert damage_of(path) == "is no GGUF file"


@pytest.mark.parametrize(
    "content",
    [
        header(version=1),
        header(version=0x03000000),
        header(kind=99) + bytes(128),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + value(b"new", 77, bytes(400)),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 40) + bytes(400),
    ],
)
def test_what_is_not_known_is_not_judged(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert damage_of(path) == ""
