"""The tools of the service, and of one run after its allow and deny lists (spec 06, section 2).

Names compare without case; `bash` means `exec`; lists may hold `*` and `group:` names. Deny wins. An empty allow list
allows all. Names that match no tool allow and deny nothing, but a list of such names alone leaves a run without tools.
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from lanewayd.messages import ToolCall, ToolOutcome, ToolSpec
from lanewayd.tools.arguments import ArgumentCheck, ArgumentsRefused
from lanewayd.tools.interface import PreparedCall, SelfLimited, Tool, ToolContext, ToolResult
from lanewayd.tools.result_limits import NO_OUTPUT, limit_result, result_limit_chars
from lanewayd.tools.terminal_text import without_nul

_ALIASES = {"bash": "exec"}
_GROUPS = {
    "group:fs": ("read", "write", "edit", "apply_patch"),
    "group:runtime": ("exec", "process"),
}
_NAMED_CHARS = 100


def normalised_name(name: str) -> str:
    """The form in which tool names are compared."""
    folded = name.strip().lower()
    return _ALIASES.get(folded, folded)


class LimitedTool:
    """A tool whose results are valid text within the limits for the run's model, whatever the tool does."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    @property
    def is_idempotent(self) -> bool:
        return self._tool.is_idempotent

    @property
    def is_sequential(self) -> bool:
        return self._tool.is_sequential

    def limit_s(self, arguments: dict[str, Any]) -> float:
        return self._tool.limit_s(arguments) if isinstance(self._tool, SelfLimited) else 0.0

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        result: ToolResult | None = await self._tool.run(arguments, context)
        if result is None:
            # Tools of others may forget to return; that is an empty result, not a failure.
            return ToolResult(NO_OUTPUT)
        text = limit_result(without_nul(result.text), result_limit_chars(context.context_window_tokens))
        outcome = ToolOutcome.ERROR if result.is_error and result.outcome is ToolOutcome.OK else result.outcome
        return ToolResult(text, is_error=result.is_error, outcome=outcome)


class RunTools:
    """The tools of one run: a `Toolset`. Made by `ToolShelf.select`."""

    def __init__(self, tools: Sequence[tuple[Tool, ArgumentCheck]], *, is_emptied_by_policy: bool) -> None:
        self._tools = {normalised_name(tool.spec.name): (tool, check) for tool, check in tools}
        self._is_emptied_by_policy = is_emptied_by_policy

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool, _ in self._tools.values())

    @property
    def is_emptied_by_policy(self) -> bool:
        return self._is_emptied_by_policy

    def prepare(self, call: ToolCall) -> PreparedCall | ToolResult:
        found = self._tools.get(normalised_name(call.name))
        if found is None:
            known = ", ".join(tool.spec.name for tool, _ in self._tools.values()) or "none"
            text = without_nul(f"There is no tool {call.name[:_NAMED_CHARS]!r}. Tools: {known}.")
            return ToolResult(text, is_error=True, outcome=ToolOutcome.ERROR)
        tool, check = found
        arguments = check.check(call.arguments_json)
        if isinstance(arguments, ArgumentsRefused):
            return ToolResult(arguments.text, is_error=True, outcome=ToolOutcome.ERROR)
        return PreparedCall(call, tool, arguments)


class ToolShelf:
    """All tools of the service, by name. Does not change. Raises ValueError if two have one name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        ordered = sorted(tools, key=lambda tool: normalised_name(tool.spec.name))
        self._tools = [(LimitedTool(tool), ArgumentCheck(tool.spec.name, tool.spec.schema)) for tool in ordered]
        self._names = [normalised_name(tool.spec.name) for tool in ordered]
        if len(set(self._names)) < len(self._names):
            raise ValueError("two tools have the same name")

    def select(self, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> RunTools:
        """The tools of a run, by name in alphabetical order."""
        allowed, denied = _patterns(allow), _patterns(deny)
        chosen = [
            entry
            for name, entry in zip(self._names, self._tools, strict=True)
            if (not allowed or _matches(name, allowed)) and not _matches(name, denied)
        ]
        return RunTools(chosen, is_emptied_by_policy=bool(allowed) and not chosen)


def _patterns(names: Iterable[str]) -> list[str]:
    patterns: list[str] = []
    for name in names:
        normalised = normalised_name(name)
        patterns.extend(_GROUPS.get(normalised, (normalised,)))
    return patterns


def _matches(name: str, patterns: Iterable[str]) -> bool:
    # Only `*` is special in a pattern: fnmatch's brackets and question marks are taken as they are.
    return any(fnmatchcase(name, pattern.replace("[", "[[]").replace("?", "[?]")) for pattern in patterns)
