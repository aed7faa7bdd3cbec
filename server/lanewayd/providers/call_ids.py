"""Ids of tool calls: what a model gives is kept if it is new in the session, else one is made up."""

import secrets
from collections.abc import Callable, Iterable

from lanewayd.messages import AssistantMessage, Message

CallIdFactory = Callable[[], str]


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
