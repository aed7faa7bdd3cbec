"""An event codec that needs no protobuf: JSON lines, so that tests of the store can read what was stored."""

import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from lanewayd.events import EventPayload, kind_of


class JsonCodec:
    """Implements `EventCodec`."""

    def encode(
        self, payload: EventPayload, *, run_id: str, seq: int, time: datetime, session_key: str, agent_id: str
    ) -> bytes:
        event = {
            "run_id": run_id,
            "seq": seq,
            "time": time.isoformat(),
            "session_key": session_key,
            "agent_id": agent_id,
            kind_of(payload).value: asdict(payload),
        }
        return json.dumps(event, default=str).encode()

    def with_cursor(self, encoded: bytes, *, store_id: str, position: int) -> bytes:
        return encoded[:-1] + f', "cursor": "{store_id}/{position}"}}'.encode()


def decode(encoded: bytes) -> dict[str, Any]:
    """The event as a dictionary, with its payload under the name of its kind."""
    event: dict[str, Any] = json.loads(encoded)
    return event
