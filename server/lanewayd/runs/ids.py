"""Ids the service makes. Order and paging never use them (D-6)."""

import os
import time
import uuid


def time_ordered_uuid() -> uuid.UUID:
    """A UUID version 7: 48 bits of Unix milliseconds, then random. Source: RFC 9562, 5.7; not in Python 3.11."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    return uuid.UUID(int=value & ~(0x3 << 62) | 0x2 << 62)


class Ids:
    """Maker of ids; tests may give another."""

    def run(self) -> str:
        """A run's id."""
        return f"run_{time_ordered_uuid()}"

    def session(self) -> str:
        """A session's id."""
        return str(time_ordered_uuid())

    def message(self) -> str:
        """The id an assistant message is streamed under."""
        return f"msg_{uuid.uuid4().hex}"

    def entry(self) -> str:
        """A transcript entry's id, unique in the store."""
        return f"ent_{time_ordered_uuid().hex}"
