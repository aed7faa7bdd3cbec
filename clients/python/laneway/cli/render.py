"""Shows a run on the terminal while it happens. Without a terminal the same text, without colours."""

from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from laneway.cli.text import (
    duration_text,
    error_text,
    excerpt,
    one_line,
    outcome_text,
    safe,
    seconds_text,
    short_arguments,
    state_style,
    state_text,
    usage_text,
)
from laneway.v1 import event_pb2, run_pb2

_ARGUMENT_WIDTH = 80
_OUTPUT_LINES = 5
_OUTPUT_WIDTH = 160
_VOID_WIDTH = 60


@dataclass(slots=True)
class RunView:
    """Writes each event of one run to a console. Feed it every event once, in order.

    `heads`: say which run and which message of the user it is about; who has just sent it knows.
    """

    console: Console
    heads: bool = False
    has_ended: bool = False
    _at_line_start: bool = True
    _kind: str = ""
    """What the open line holds: text, reasoning or nothing."""
    _shown: dict[str, str] = field(default_factory=dict)
    """The text shown of each message that has not ended."""

    def accepted(self, response: run_pb2.AgentResponse) -> None:
        """The message is durable."""
        note = ", sent before" if response.duplicate else ""
        if not response.run_id:  # a command, which is answered
            self._line(safe(response.reply), "")
            return
        self._line(f"run {response.run_id} in session {safe(response.session_key)}{note}", "dim")

    def show(self, event: event_pb2.Event) -> None:
        """Write `event`; arms this client does not know are passed over."""
        match event.WhichOneof("payload"):
            case "assistant":
                self._delta(event.assistant.message_id, event.assistant.delta)
            case "reasoning":
                self._stream("reasoning", event.reasoning.delta, "dim italic")
            case "message" if event.message.role == "assistant":
                self._message(event.message)
            case "message" if event.message.role == "user" and self.heads:
                self._user(event.message.text)
            case "snapshot" if self.heads:
                self._snapshot(event.snapshot.run)
            case "tool":
                self._tool(event.tool)
            case "queue" if event.queue.phase == event_pb2.QUEUE_PHASE_QUEUED:
                self._line(f"waiting: {event.queue.position} queued before it", "dim")
            case "diagnostic":
                self._line(f"{safe(event.diagnostic.source)}: {safe(event.diagnostic.text)}", "dim")
            case "lifecycle":
                self._lifecycle(event.lifecycle)

    def head(self, run_id: str, session_key: str) -> None:
        """Which run the next lines are of."""
        self._line(f"run {run_id} in session {safe(session_key)}", "dim")

    def result(self, run: run_pb2.Run) -> None:
        """How a run ended of which there is no event."""
        step = event_pb2.LifecycleEvent(state=run.state, stop_reason=run.stop_reason)
        for name in ("started_at", "ended_at", "usage", "error"):
            if run.HasField(name):
                getattr(step, name).CopyFrom(getattr(run, name))
        self._end(step)

    def leave(self) -> None:
        """Somebody else writes to the console now."""
        self._end_line()

    def notice(self, text: str) -> None:
        """A line about the run that is no event of it."""
        self._line(f"[{text}]", "yellow")

    def _user(self, text: str) -> None:
        first, *rest = excerpt(text, _OUTPUT_LINES, _OUTPUT_WIDTH) or [""]
        self._line(f"user: {first}", "bold")
        for row in rest:
            self._line(f"      {row}", "bold")

    def _snapshot(self, run: run_pb2.Run) -> None:
        self.head(run.run_id, run.session_key)

    def _delta(self, message_id: str, delta: str) -> None:
        self._shown[message_id] = self._shown.get(message_id, "") + delta
        self._stream("text", delta, "")

    def _message(self, message: event_pb2.MessageEvent) -> None:
        if not self._shown.pop(message.message_id, "") and message.text:
            self._stream("text", message.text, "")
        self._end_line()
        if message.truncated:
            self._line(f"[the text is cut: {message.total_bytes} bytes, whole in entry {message.entry_id}]", "yellow")

    def _tool(self, tool: event_pb2.ToolEvent) -> None:
        if tool.phase == event_pb2.TOOL_PHASE_START:
            self._line(f"> {safe(tool.name)} {short_arguments(tool.arguments_json, _ARGUMENT_WIDTH)}".rstrip(), "cyan")
        elif tool.phase == event_pb2.TOOL_PHASE_RESULT:
            outcome, style = outcome_text(tool.outcome)
            took = f" in {duration_text(tool.duration)}" if tool.HasField("duration") else ""
            self._line(f"< {safe(tool.name)} {outcome}{took}", style)
            for row in excerpt(tool.result.text, _OUTPUT_LINES, _OUTPUT_WIDTH):
                self._line(f"    {row}".rstrip(), "dim")

    def _lifecycle(self, step: event_pb2.LifecycleEvent) -> None:
        if step.phase == event_pb2.LIFECYCLE_PHASE_RETRY:
            pause = f" in {duration_text(step.delay)}" if step.delay.ToNanoseconds() else ""
            self._line(f"! {error_text(step.error)}; try {step.attempt}{pause}", "yellow")
            self._void(step.void_message_id)
        elif step.phase == event_pb2.LIFECYCLE_PHASE_RECOVERED:
            self._line("! the server was restarted and goes on with this run", "yellow")
            self._void(step.void_message_id)
        elif step.phase == event_pb2.LIFECYCLE_PHASE_FALLBACK:
            why = f"{error_text(step.error)}; " if step.HasField("error") else ""
            self._line(f"! {why}{safe(step.provider)}/{safe(step.model)} takes over", "yellow")
            self._void(step.void_message_id)
        elif step.phase == event_pb2.LIFECYCLE_PHASE_FALLBACK_CLEARED:
            self._line(f"! {safe(step.provider)}/{safe(step.model)} answers again", "yellow")
        elif step.phase in (event_pb2.LIFECYCLE_PHASE_END, event_pb2.LIFECYCLE_PHASE_ERROR):
            self._end(step)

    def _void(self, message_id: str) -> None:
        text = self._shown.pop(message_id, "")
        if text:
            self._line(f"  void, comes again: ~~{one_line(text, _VOID_WIDTH)}~~", "strike dim")

    def _end(self, step: event_pb2.LifecycleEvent) -> None:
        self.has_ended = True
        words = [state_text(step.state)]
        if step.stop_reason and step.state != run_pb2.RUN_STATE_FAILED:
            words.append(safe(step.stop_reason))
        if step.HasField("started_at") and step.HasField("ended_at"):
            took_s = step.ended_at.ToNanoseconds() - step.started_at.ToNanoseconds()
            words.append(seconds_text(max(0, took_s) / 1e9))
        if step.HasField("usage"):
            words.append(usage_text(step.usage))
        self._line("= " + " | ".join(words), state_style(step.state))
        if step.HasField("error"):
            self._line(f"  {error_text(step.error)}", "red")

    def _stream(self, kind: str, text: str, style: str) -> None:
        """Text that goes on in the open line."""
        if self._kind not in ("", kind):
            self._end_line()
        if kind == "reasoning" and self._kind != kind:
            self._write("(thinking) ", style)
        self._kind = kind
        self._write(safe(text), style)

    def _write(self, text: str, style: str) -> None:
        if text:
            # Not print(): it would break lines at the width of the terminal and read [brackets] as markup.
            self.console.print(Text(text, style=style), end="", soft_wrap=True)
            self.console.file.flush()
            self._at_line_start = text.endswith("\n")

    def _end_line(self) -> None:
        if not self._at_line_start:
            self._write("\n", "")
        self._kind = ""

    def _line(self, text: str, style: str) -> None:
        self._end_line()
        self._write(text + "\n", style)
