"""Fragments of tool calls -> whole calls. Pure. Source: spec 05, R-5.49 to R-5.53, R-5.58, and cases B-001 to B-009.

Providers disagree on what identifies a call. A fragment belongs, in this order: to the call with its index and id; to
the latest call with its index, unless that one has another id; without an index to the call with its id; with neither
to the call being streamed. Everything else opens a call. The position in a chunk means nothing.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from lanewayd.messages import ToolCall, valid_text
from lanewayd.providers.arguments import MAX_CALLS, CallRefused, argument_objects, check_size, is_object
from lanewayd.providers.call_ids import CallIds


@dataclass(slots=True)
class _OpenCall:
    """A call being streamed."""

    index: int | None
    provider_id: str
    name: str = ""
    parts: list[str] = field(default_factory=list)
    size_bytes: int = 0

    @property
    def arguments(self) -> str:
        return "".join(self.parts).strip()

    def add(self, text: str) -> None:
        self.size_bytes += len(text.encode("utf-8", "surrogatepass"))
        check_size(self.size_bytes)
        self.parts.append(text)


class ToolCallAssembly:
    """Owns the calls of one answer until it ends."""

    def __init__(self) -> None:
        self._calls: list[_OpenCall] = []
        self._current: _OpenCall | None = None

    @property
    def has_calls(self) -> bool:
        """A call was begun."""
        return bool(self._calls)

    def add(self, fragment: Any) -> None:
        """Take one item of `tool_calls`. Raises CallRefused beyond the limits."""
        if not isinstance(fragment, dict):
            return
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        name = _text(function.get("name")).strip()
        call_id = _text(fragment.get("id")).strip()
        arguments = function.get("arguments")
        index = _index(fragment.get("index"))
        has_something = name or call_id or arguments not in (None, "")
        call = self._find(index, call_id)
        if call is not None and self._begins_another(call, name, arguments, call_id):
            call = None
        if call is None:
            if not has_something:
                return
            call = self._open(index, call_id)
        self._current = call
        call.provider_id = call.provider_id or call_id
        call.name = name or call.name
        _add_arguments(call, arguments)

    def finish(self, ids: CallIds, signatures: dict[str, str], *, drops_phantoms: bool) -> tuple[ToolCall, ...]:
        """The whole calls, in the order in which they were begun.

        `signatures` are by the provider's ids. With `drops_phantoms`, calls without name and arguments are none.
        Raises CallRefused when a call has no name, or arguments that are no complete JSON objects.
        """
        calls: list[ToolCall] = []
        for call in self._calls:
            if not call.name:
                if drops_phantoms and not call.arguments:
                    continue
                raise CallRefused("incomplete or malformed tool call: it has no name")
            for position, arguments_json in enumerate(argument_objects(call.name, call.arguments)):
                call_id = ids.claim(call.provider_id if position == 0 else "")
                signature = signatures.get(call.provider_id, "") if position == 0 else ""
                calls.append(ToolCall(call_id, call.name, arguments_json, signature))
        return tuple(calls)

    def _find(self, index: int | None, call_id: str) -> _OpenCall | None:
        latest = reversed(self._calls)
        if index is None:
            if not call_id:
                return self._current
            return next((call for call in latest if call.provider_id == call_id), None)
        same_index = [call for call in latest if call.index == index]
        if call_id:
            exact = next((call for call in same_index if call.provider_id == call_id), None)
            if exact is not None:
                return exact
            # A call that has no id yet takes this one; a call with another id is another call.
            same_index = [call for call in same_index[:1] if not call.provider_id]
        return same_index[0] if same_index else None

    def _begins_another(self, call: _OpenCall, name: str, arguments: Any, call_id: str) -> bool:
        """A fragment that nothing tells apart from `call` but that a complete call of another name went before."""
        if not name or not call.name or call_id or arguments in (None, ""):
            return False
        return (name != call.name or call.index is None) and is_object(call.arguments)

    def _open(self, index: int | None, call_id: str) -> _OpenCall:
        if len(self._calls) == MAX_CALLS:
            raise CallRefused(f"an answer with more than {MAX_CALLS} tool calls")
        call = _OpenCall(index, call_id)
        self._calls.append(call)
        return call


def _add_arguments(call: _OpenCall, arguments: Any) -> None:
    if arguments is None:
        return
    if isinstance(arguments, str):
        call.add(arguments)
        return
    # Some servers send the object itself, at times first an empty one.
    if call.arguments == "{}":
        call.parts.clear()
    call.add(json.dumps(arguments, ensure_ascii=False))


def _text(value: Any) -> str:
    """Names and ids are strings; a few servers number their calls."""
    if isinstance(value, str):
        return valid_text(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _index(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
