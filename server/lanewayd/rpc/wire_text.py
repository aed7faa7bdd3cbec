"""Python text on its way to the wire: always valid UTF-8, cut at characters. Pure."""

from lanewayd.messages import valid_text


def size_bytes(text: str) -> int:
    """Length of valid `text` in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def cut(text: str, limit_bytes: int) -> str:
    """The longest beginning of `text`, made valid, that has at most `limit_bytes` in UTF-8."""
    text = valid_text(text)
    if len(text) * 4 <= limit_bytes or size_bytes(text) <= limit_bytes:
        return text
    # Only the last character can be incomplete, because the text was valid.
    return text.encode()[: max(limit_bytes, 0)].decode(errors="ignore")


def has_control_characters(text: str) -> bool:
    """Whether `text` has a character of Unicode's category Cc: U+0000 to U+001F, U+007F to U+009F."""
    return any(character < " " or "\x7f" <= character <= "\x9f" for character in text)


def pieces(text: str, limit_bytes: int) -> list[str]:
    """`text`, made valid, in pieces of at most `limit_bytes`, at least one."""
    encoded = valid_text(text).encode()
    found = []
    start = 0
    while len(encoded) - start > limit_bytes:
        end = start + limit_bytes
        while is_continuation(encoded, end):
            end -= 1
        found.append(encoded[start:end].decode())
        start = end
    found.append(encoded[start:].decode())
    return found


def is_continuation(encoded: bytes, offset: int) -> bool:
    """Whether `offset` lies within a character of valid UTF-8."""
    return 0 < offset < len(encoded) and encoded[offset] & 0xC0 == 0x80
