"""Ids of tool calls: what a model gives is kept if it is new in the session, else one is made up."""

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable

from lanewayd.messages import AssistantMessage, Message

CallIdFactory = Callable[[], str]
_NINE_CHARACTERS = re.compile(r"[A-Za-z0-9]{9}")


def random_call_id() -> str:
    """`call_` and 24 hex characters (spec 05, R-5.51)."""
    return f"call_{secrets.token_hex(12)}"


class CallIds:
    """Gives each call of one model answer an id that no other call of its session has.

    Models that number their calls from 0 in every answer would otherwise give two calls of a session one id, and their
    rows, results and events could not be told apart.
    """

    def __init__(self, messages: Iterable[Message], new_call_id: CallIdFactory) -> None:
        self._new_call_id = new_call_id
        self._messages = messages
        self._taken: set[str] | None = None
        """Looked up when the first call comes; most answers have none."""

    def claim(self, call_id: str) -> str:
        """`call_id` if it is not blank and not taken, else a made-up one."""
        call_id = call_id.strip()
        taken = self._taken
        if taken is None:
            answers = [message for message in self._messages if isinstance(message, AssistantMessage)]
            taken = self._taken = {call.call_id for answer in answers for call in answer.tool_calls}
        while not call_id or call_id in taken:
            call_id = self._new_call_id()
        taken.add(call_id)
        return call_id


class WireIds:
    """Gives the calls of one request ids that a strict service takes: of legal characters, short, none empty or twice.

    Legal ids stay as they are. In the order of the calls, so that the same begin of a conversation gets the same ids.
    """

    def __init__(self, illegal: re.Pattern[str], max_chars: int) -> None:
        """`illegal` matches each character that no id may have, neither letters nor digits; `max_chars` > 8."""
        self._illegal = illegal
        self._max_chars = max_chars
        self._given: set[str] = set()

    def give(self, call_id: str) -> str:
        """The id of the next call."""
        legal = self._illegal.sub("", call_id)[: self._max_chars]
        number = 0
        wire_id = legal or "call"
        while wire_id in self._given or (number == 0 and wire_id != call_id):
            digest = hashlib.sha256(f"{number}:{call_id}".encode("utf-8", "replace")).hexdigest()[:8]
            wire_id = legal[: self._max_chars - 8] + digest
            number += 1
        self._given.add(wire_id)
        return wire_id


class NineCharacterIds:
    """Gives the calls of one request ids as Mistral's models demand them: exactly nine letters and digits (R-5.114)."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def give(self, call_id: str) -> str:
        """The id of the next call; a legal one that is not given yet stays as it is."""
        wire_id, number = call_id, 0
        while not _NINE_CHARACTERS.fullmatch(wire_id) or wire_id in self._given:
            wire_id = hashlib.sha256(f"{number}:{call_id}".encode("utf-8", "replace")).hexdigest()[:9]
            number += 1
        self._given.add(wire_id)
        return wire_id


def ids_within_message(call_ids: Iterable[str], max_chars: int | None = None) -> list[str]:
    """Ids for the calls of one message that a service takes which asks for little: none empty, none twice, none longer
    than `max_chars` > 9. Others stay as they are."""
    given: list[str] = []
    for position, call_id in enumerate(call_ids):
        stem, number = call_id.strip(), position
        wire_id = _cut(stem or f"call_{number}", max_chars)
        while wire_id in given:
            wire_id = _cut(f"{stem or 'call'}_{number}", max_chars)
            number += 1
        given.append(wire_id)
    return given


def _cut(call_id: str, max_chars: int | None) -> str:
    if max_chars is None or len(call_id) <= max_chars:
        return call_id
    digest = hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{call_id[: max_chars - 9]}_{digest}"
