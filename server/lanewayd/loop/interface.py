"""What the loop needs from the run it works for: a recorder of what happens, and a gate it passes before each step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lanewayd.messages import AssistantMessage, Message, RunError, ToolCall, ToolResultMessage, Usage, UserMessage
from lanewayd.models.candidates import Candidate
from lanewayd.tools.interface import ToolContext, ToolResult


class Parked(Exception):
    """The server is leaving: the run stops here and another process goes on with it (D-18)."""


class StepGate(Protocol):
    """Passed before each model call and tool batch."""

    def check(self) -> None:
        """Raises Parked when no further step may begin."""


class Recorder(Protocol):
    """Writes down what the loop does, in order. Nothing here waits for the disk but `launch`."""

    def calling(self, candidate: Candidate, *, instead_of: RunError | None, attempt: int) -> None:
        """A call begins, the `attempt`th for this message. `instead_of`: why it is not made of the model before it in
        the chain, whose message is void; None = the model is the one of the last call, or the first of the chain."""

    def text(self, content_index: int, text: str) -> None: ...
    def reasoning(self, content_index: int, text: str) -> None: ...
    def block_ended(self) -> None:
        """Show what is held back for merging."""

    def message_ended(self, message: AssistantMessage) -> None:
        """The message is complete: its entry, its event, and a REQUESTED row for each of its calls."""

    @property
    def usage(self) -> Usage:
        """What all calls of the run have used, those of earlier dispatches and those that failed included."""

    def call_failed(self, usage: Usage) -> None:
        """A call ended without a message that counts; it used this. What becomes of it is told next."""

    def retry(self, error: RunError, *, attempt: int, delay_s: float, corrections: int | None = None) -> None:
        """The call failed and is tried again; what it showed is void. `corrections`: its answer did not fit the schema,
        so many times by now."""

    async def launch(self, calls: Sequence[ToolCall], *, durable: bool) -> None:
        """The calls begin. Returns when their message is synced, with `durable` when their LAUNCHED rows are (D-2)."""

    def tool_update(self, call: ToolCall, text: str) -> None: ...
    def tool_finished(self, call: ToolCall, result: ToolResult, *, duration_s: float, really_ran: bool) -> None:
        """One call has its result. `really_ran`: the tool was executed, so the run got on."""

    def batch_settled(self, results: Sequence[ToolResultMessage]) -> None:
        """All calls of the message have results; they enter the transcript in request order."""


class Steering(Protocol):
    """Messages that wait to go into the run at its next step (D-7)."""

    @property
    def is_waiting(self) -> bool:
        """There is one; asked at each place where the run can take it."""

    async def take(self) -> tuple[UserMessage, ...]:
        """What waits, in the order of arrival, stored as part of the run; empty when all was withdrawn."""


class Contents(Protocol):
    """What attachments hold."""

    async def of(self, messages: Sequence[Message]) -> Mapping[str, bytes]:
        """By `Attachment.blob_hash`; what is not there is named to the model only."""


class Workplace(Protocol):
    """Where the tools of a run work."""

    async def prepare(self) -> None:
        """Make what tools rely on, as the workspace folder. Raises OSError."""

    def context(self, call_id: str, report: Callable[[str], None]) -> ToolContext:
        """What a call may know of its run; `prepare` was called."""


@dataclass(frozen=True, slots=True)
class LoopStart:
    """Where the loop begins: fresh, or in the middle of a recovered run."""

    messages: tuple[Message, ...]
    turns: int = 0
    unsettled: tuple[ToolCall, ...] = ()
    """Calls of the last message that have no results in the transcript yet."""
    known: tuple[ToolResultMessage, ...] = ()
    """Results of some of those calls that are stored already, in any order."""


@dataclass(frozen=True, slots=True)
class LoopEnd:
    """How the loop ended: with the model's last message, or with an error."""

    message: AssistantMessage | None = None
    error: RunError | None = None
    messages: tuple[Message, ...] = ()
    """The whole conversation, `message` at its end; empty when the loop ended with an error."""
