"""Shows a demonstration: to a person, live, with colours at a terminal; or as data, one step in each line."""

import json
from dataclasses import asdict

from rich.console import Console
from rich.status import Status
from rich.text import Text

from laneway.cli.demo.prose import MARGIN, Prose, hanging
from laneway.cli.demo.report import Check, Outcome
from laneway.cli.text import error_text, excerpt, outcome_text, short_arguments
from laneway.v1 import event_pb2

_ARGUMENT_WIDTH = 120
_OUTPUT_LINES = 5
_OUTPUT_WIDTH = 160


class Screen:
    """Implements report.View for people. Every line is at most as wide as the terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._prose = Prose(console)
        self._status: Status | None = None
        encodes_all = console.encoding.lower().startswith("utf")
        self.good, self._bad, self._other = ("✓", "✗", "·") if encodes_all else ("[ok]", "[FAILED]", "-")

    def line(self, text: str, style: str = "", *, indent: int = 0) -> None:
        """A line of its own, folded between words."""
        self._stop_waiting()
        self._prose.end()
        for row in hanging(text, width=self._prose.width - indent, indent=0):
            self._console.print(Text(" " * indent + row, style=style), soft_wrap=True)

    def gap(self) -> None:
        """An empty line."""
        self._stop_waiting()
        self._prose.end()
        self._console.print()

    def begin(self, number: int, title: str, why: str) -> None:
        self.gap()
        self._console.print(Text.assemble((f"{number} ", "bold cyan"), (title, "bold")), soft_wrap=True)
        self.line(why, "dim", indent=len(MARGIN))

    def sent(self, message: str) -> None:
        self._stop_waiting()
        self._prose.say("you", message, name_style="bold green", style="bold")
        if self._console.is_terminal:
            self._status = self._console.status(Text("the model reads", style="dim"), spinner="dots")
            self._status.start()

    def show(self, event: event_pb2.Event) -> None:
        match event.WhichOneof("payload"):
            case "assistant":
                self._stop_waiting()
                self._prose.stream("model", event.assistant.delta, name_style="cyan")
            case "message" if event.message.role == "assistant":
                self._prose.end()
            case "tool":
                self._tool(event.tool)
            case "lifecycle":
                self._lifecycle(event.lifecycle)

    def note(self, text: str) -> None:
        self._marked(self._other, text, "yellow")

    def checked(self, check: Check) -> None:
        text = f"{check.claim}: {check.found}" if check.found else check.claim
        if check.holds:
            self._marked(self.good, text, "green", "")
            return
        self._marked(self._bad, check.claim, "bold red")
        self.line(f"expected: {check.expected}", "red", indent=4)
        self.line(f"found: {check.found or 'something else'}", "red", indent=4)

    def ended(self, outcome: Outcome) -> None:
        self._stop_waiting()

    def close(self) -> None:
        """Leave the terminal as it was, whatever has happened."""
        self._stop_waiting()
        self._prose.end()

    def _tool(self, tool: event_pb2.ToolEvent) -> None:
        self._stop_waiting()
        if tool.phase == event_pb2.TOOL_PHASE_START:
            arguments = short_arguments(tool.arguments_json, _ARGUMENT_WIDTH)
            self._prose.say("tool", f"{tool.name} {arguments}", name_style="magenta")
        elif tool.phase == event_pb2.TOOL_PHASE_RESULT:
            outcome, style = outcome_text(tool.outcome)
            for row in excerpt(tool.result.text, _OUTPUT_LINES, _OUTPUT_WIDTH):
                self._prose.say("", row, name_style="", style="dim")
            if tool.outcome != event_pb2.TOOL_OUTCOME_OK:
                self._prose.say("", outcome, name_style="", style=style)

    def _lifecycle(self, step: event_pb2.LifecycleEvent) -> None:
        if step.phase == event_pb2.LIFECYCLE_PHASE_RECOVERED:
            self.note("RECOVERED: what the model had begun to say above is void, it answers anew")
        elif step.phase == event_pb2.LIFECYCLE_PHASE_RETRY:
            self.note(f"RETRY: {error_text(step.error)}")
        elif step.phase == event_pb2.LIFECYCLE_PHASE_FALLBACK:
            self.note(f"FALLBACK: {step.provider}/{step.model} takes over")
        elif step.phase == event_pb2.LIFECYCLE_PHASE_ERROR:
            self.note(f"the run ended: {error_text(step.error)}")

    def _marked(self, mark: str, text: str, mark_style: str, style: str | None = None) -> None:
        self._stop_waiting()
        self._prose.end()
        indent = len(MARGIN) + len(mark) + 1
        first, *others = hanging(f"{MARGIN}{mark} {text}".strip(), width=self._prose.width - len(MARGIN), indent=0)
        text_style = mark_style if style is None else style
        rest = first.removeprefix(mark).lstrip()
        self._console.print(Text.assemble(MARGIN, (mark, mark_style), " ", (rest, text_style)), soft_wrap=True)
        for row in others:
            self._console.print(Text(" " * indent + row, style=text_style), soft_wrap=True)

    def _stop_waiting(self) -> None:
        status, self._status = self._status, None
        if status is not None:
            status.stop()


class JsonLines:
    """Implements report.View for programs: each step with its checks as one line of JSON on stdout."""

    def begin(self, number: int, title: str, why: str) -> None:
        pass

    def sent(self, message: str) -> None:
        pass

    def show(self, event: event_pb2.Event) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def checked(self, check: Check) -> None:
        pass

    def ended(self, outcome: Outcome) -> None:
        fields = {
            "step": outcome.number,
            "title": outcome.title,
            "ok": outcome.holds,
            "took_s": round(outcome.took_s, 3),
            "checks": [_fields(check) for check in outcome.checks],
        }
        print(json.dumps(fields, ensure_ascii=False, separators=(",", ":")), flush=True)


def _fields(check: Check) -> dict[str, object]:
    fields = asdict(check)
    fields["ok"] = fields.pop("holds")
    return {name: fields[name] for name in ("claim", "ok", "found", "expected") if fields[name] != ""}
