"""What a subscriber has seen of a run, and whether that is the whole log. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from laneway.cli.text import error_text, one_line, state_text
from laneway.v1 import event_pb2, run_pb2

_TEXT_WIDTH = 160


@dataclass(slots=True)
class Seen:
    """The events of one run, in the order in which they came."""

    events: list[event_pb2.Event] = field(default_factory=list)

    @property
    def last_seq(self) -> int:
        """The place of this reader; 0 before the first event."""
        return self.events[-1].seq if self.events else 0

    @property
    def deltas(self) -> list[event_pb2.AssistantEvent]:
        """The pieces of text, also of messages that became void."""
        return [event.assistant for event in self.events if event.WhichOneof("payload") == "assistant"]

    @property
    def lifecycle(self) -> list[event_pb2.LifecycleEvent]:
        """The steps in the life of the run."""
        return [event.lifecycle for event in self.events if event.WhichOneof("payload") == "lifecycle"]

    @property
    def end(self) -> event_pb2.LifecycleEvent:
        """The terminal event; an empty one if there was none."""
        steps = self.lifecycle
        return steps[-1] if steps and steps[-1].HasField("ended_at") else event_pb2.LifecycleEvent()

    @property
    def has_succeeded(self) -> bool:
        """Whether the run has."""
        return self.end.state == run_pb2.RUN_STATE_SUCCEEDED

    @property
    def how_it_ended(self) -> str:
        """In words."""
        if self.end.HasField("error"):
            return error_text(self.end.error)
        return state_text(self.end.state) if self.end.state else "its events broke off"

    @property
    def messages(self) -> list[event_pb2.MessageEvent]:
        """What the model said, without what became void."""
        messages = [event.message for event in self.events if event.WhichOneof("payload") == "message"]
        return [message for message in messages if message.role == "assistant"]

    @property
    def answer(self) -> str:
        """The last message, in one line."""
        return one_line(self.messages[-1].text, _TEXT_WIDTH) if self.messages else ""

    @property
    def tool_results(self) -> list[event_pb2.ToolEvent]:
        """How each tool call ended."""
        tools = [event.tool for event in self.events if event.WhichOneof("payload") == "tool"]
        return [tool for tool in tools if tool.phase == event_pb2.TOOL_PHASE_RESULT]

    @property
    def calls(self) -> list[event_pb2.ToolEvent]:
        """What the model called."""
        tools = [event.tool for event in self.events if event.WhichOneof("payload") == "tool"]
        return [tool for tool in tools if tool.phase == event_pb2.TOOL_PHASE_START]


def gaps_in(events: Sequence[event_pb2.Event]) -> str:
    """What is wrong with the numbers of a whole log; empty if they are 1, 2, 3 and so on."""
    for expected, event in enumerate(events, start=1):
        if event.seq != expected:
            kind = "lost" if event.seq > expected else "doubled or out of order"
            return f"event {expected} is {kind}: in its place came {event.seq}"
    return "" if events else "there is no event"


def difference(some: Sequence[event_pb2.Event], others: Sequence[event_pb2.Event]) -> str:
    """Where two readings of one log differ; empty if they are the same bytes."""
    for number, (one, other) in enumerate(zip(some, others, strict=False), start=1):
        if one.SerializeToString(deterministic=True) != other.SerializeToString(deterministic=True):
            return f"event {number} differs: {one.seq} here, {other.seq} there"
    return "" if len(some) == len(others) else f"{len(some)} events here, {len(others)} there"
