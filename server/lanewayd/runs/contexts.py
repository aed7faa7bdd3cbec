"""The conversations of sessions that ran lately, so that a turn does not read its whole transcript again.

A conversation is kept under the entry it ends with. A run that finds another entry at the end of its session, after a
reset or whatever else wrote there, reads the transcript. Bounded in sessions and in characters.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from lanewayd.messages import Message, ToolCall, ToolResultMessage, UserMessage

MAX_SESSIONS = 256
MAX_CHARACTERS = 16_000_000
_MESSAGE_CHARACTERS = 500
"""A message takes so much memory beside its text."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a model sees of a session, and about how much memory that takes."""

    messages: tuple[Message, ...] = ()
    characters: int = 0

    def grown(self, messages: Sequence[Message]) -> "Context":
        """`messages` begin with all of this context's."""
        more = sum(map(_characters, messages[len(self.messages) :]))
        return Context(tuple(messages), self.characters + more)


@dataclass(frozen=True, slots=True)
class _Kept:
    leaf_entry_id: str
    context: Context


class Contexts:
    """Owns what is kept, by session id; the sessions that ended a run longest ago go first."""

    def __init__(self, *, max_sessions: int = MAX_SESSIONS, max_characters: int = MAX_CHARACTERS) -> None:
        self._max_sessions = max_sessions
        self._max_characters = max_characters
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._characters = 0

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, session_id: str, leaf_entry_id: str) -> Context | None:
        """The context that ends with `leaf_entry_id`, the empty one for "", None when it is not known. It is not kept
        any longer: the run that takes it gives it back longer."""
        kept = self._kept.pop(session_id, None)
        if kept is not None:
            self._characters -= kept.context.characters
        if not leaf_entry_id:
            return Context()
        return kept.context if kept is not None and kept.leaf_entry_id == leaf_entry_id else None

    def keep(self, session_id: str, leaf_entry_id: str, context: Context) -> None:
        """`leaf_entry_id` is the entry of the last message."""
        self.take(session_id, "")
        self._kept[session_id] = _Kept(leaf_entry_id, context)
        self._characters += context.characters
        while len(self._kept) > self._max_sessions or self._characters > self._max_characters:
            _, gone = self._kept.popitem(last=False)
            self._characters -= gone.context.characters


def _characters(message: Message) -> int:
    if isinstance(message, UserMessage | ToolResultMessage):
        return _MESSAGE_CHARACTERS + len(message.text)
    sizes = [len(block.arguments_json if isinstance(block, ToolCall) else block.text) for block in message.content]
    return _MESSAGE_CHARACTERS + sum(sizes)
