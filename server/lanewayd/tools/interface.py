"""What a tool is to the loop. In-process tools implement it; remote ones will come behind the same protocol."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from lanewayd.messages import ToolCall, ToolOutcome, ToolSpec


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a call may know of its run."""

    run_id: str
    call_id: str
    agent_id: str
    session_key: str
    workspace: Path
    """Exists; links resolved."""
    report: Callable[[str], None]
    """Tell watchers the output so far (cumulative, already cut). Ignored after the call has ended.

    A cancelled tool reports once more before it lets CancelledError out: what it had produced is not lost.
    """
    context_window_tokens: int = 0
    """Of the run's model; the result limits follow from it. 0 = unknown, taken for a small one."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call brought. `text` is for the model and already within the result limits (spec 06, section 5)."""

    text: str
    is_error: bool = False
    outcome: ToolOutcome = ToolOutcome.OK


class Tool(Protocol):
    """One tool."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description and schema, as offered to the model."""

    @property
    def is_idempotent(self) -> bool:
        """May be run again after a crash without harm; then it needs no LAUNCHED row."""

    @property
    def is_sequential(self) -> bool:
        """A batch with such a tool runs one call after the other."""

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Run one call. Arguments were checked against the schema. Any exception becomes an error result.

        When its task is cancelled the tool ends everything it started (within 2 s) and lets CancelledError out.
        """


@runtime_checkable
class SelfLimited(Protocol):
    """A tool that ends its calls by itself after some time: until then their silence means nothing."""

    def limit_s(self, arguments: dict[str, Any]) -> float:
        """Of a call with these arguments; 0 = none."""


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call that may be launched: its tool is known and allowed, its arguments fit the schema."""

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]


class Toolset(Protocol):
    """The tools of one run, after policy."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is offered, in an order that is the same for the same tools."""

    @property
    def is_emptied_by_policy(self) -> bool:
        """An allow list was given and leaves no tool: the run ends TOOLS_EMPTY before its first model call."""

    def prepare(self, call: ToolCall) -> PreparedCall | ToolResult:
        """The call ready to launch, or the error result the model gets instead. Never raises."""
