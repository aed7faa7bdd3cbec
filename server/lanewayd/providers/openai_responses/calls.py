"""One function call of a response: what was streamed of it against what its completed item says. Pure.

Source: spec 05, R-5.63 to R-5.66. What is wrong with a call is told when the response ends: until then it may turn out
that the answer was cut by its length, and then no call of it matters.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from lanewayd.messages import ToolCall
from lanewayd.providers.arguments import CallRefused, argument_object, check_size
from lanewayd.providers.call_ids import CallIds
from lanewayd.providers.openai_responses.item_fields import call_signature, text_of


@dataclass(slots=True)
class StreamedCall:
    """A call being streamed. `item_id` is the id of its item, `call_id` the one that its result will carry."""

    item_id: str = ""
    call_id: str = ""
    name: str = ""
    is_unreliable: bool = False
    """Arguments that belong to nobody known came while it was open: only those of its completed item count."""
    is_resolved: bool = False
    """Its completed item has come."""
    problem: str = ""
    _parts: list[str] = field(default_factory=list)
    _size_bytes: int = 0

    def begin(self, item: dict[str, Any]) -> None:
        """What the item says when it is added."""
        self.item_id = text_of(item.get("id"))
        self.call_id = text_of(item.get("call_id")).strip()
        self.name = text_of(item.get("name")).strip()
        self.add(text_of(item.get("arguments")))

    def add(self, text: str) -> None:
        """More arguments. Raises CallRefused beyond the limit."""
        self._size_bytes += len(text.encode("utf-8", "surrogatepass"))
        check_size(self._size_bytes)
        self._parts.append(text)

    def replace(self, text: str) -> None:
        """The whole arguments, unless empty. Raises CallRefused beyond the limit."""
        if text:
            self._parts.clear()
            self._size_bytes = 0
            self.add(text)

    def resolve(self, item: dict[str, Any]) -> None:
        """The completed item. Raises CallRefused for arguments beyond the limit."""
        self.is_resolved = True
        self.item_id = self.item_id or text_of(item.get("id"))
        self.call_id = self.call_id or text_of(item.get("call_id")).strip()
        name = text_of(item.get("name")).strip()
        if item.get("status") not in (None, "", "completed"):
            self._refuse("it was not completed")
        elif not name:
            self._refuse("it has no name")
        elif self.name and name != self.name:
            self._refuse(f"it is named {name} at its end and {self.name} before")
        self.name = self.name or name
        arguments = item.get("arguments")
        text = arguments if isinstance(arguments, str) else "" if arguments is None else _as_json(arguments)
        if self.is_unreliable and not text:
            self._refuse("its arguments were streamed without saying whose they are")
        self.replace(text)

    def whole(self, ids: CallIds) -> ToolCall:
        """The call to run. Raises CallRefused when it cannot be."""
        if not self.is_resolved:
            raise CallRefused("incomplete or malformed tool call: the response ended before it was completed")
        if self.problem:
            raise CallRefused(f"incomplete or malformed tool call: {self.problem}")
        arguments = argument_object(self.name, "".join(self._parts))
        return ToolCall(ids.claim(self.call_id), self.name, arguments, call_signature(self.item_id))

    def _refuse(self, problem: str) -> None:
        self.problem = self.problem or problem


def _as_json(arguments: Any) -> str:
    """Some servers send the object itself."""
    try:
        return json.dumps(arguments, ensure_ascii=False)
    except RecursionError:
        raise CallRefused("incomplete or malformed tool call: its arguments are nested too deeply") from None
