"""`laneway sessions show`: a conversation as people read it."""

import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from laneway.cli.connection import Connection
from laneway.cli.moments import moment_text
from laneway.cli.options import AddressOption, JsonOption, KeyArgument, run_async
from laneway.cli.session_settings import settings_line
from laneway.cli.text import excerpt, json_line, outcome_text, safe, short_arguments, usage_text
from laneway.v1 import session_pb2

_ARGUMENT_WIDTH = 80
_OUTPUT_LINES = 5
_OUTPUT_WIDTH = 160


def show(
    key: KeyArgument,
    last: Annotated[int, typer.Option(metavar="N", min=0, help="Only the last N entries; 0 = all.")] = 0,
    full: Annotated[bool, typer.Option("--full", help="Whole arguments and results of tools.")] = False,
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """Show what was said in a session, oldest first.

    With --json the first line is the session, then comes one entry per line.

    Examples:
      laneway sessions show demo
      laneway sessions show demo --last 10 --full
      laneway sessions show demo --json | jq -r 'select(.user) | .user.content[].text'
    """
    session, entries = run_async(_read(key, last, address))
    if json:
        print(json_line(session, all_fields=True))
        for entry in entries:
            print(json_line(entry))
        return
    page = _Page(Console(highlight=False), is_full=full)
    page.head(session)
    for entry in entries:
        page.entry(entry)


async def _read(key: str, last: int, address: str | None) -> tuple[session_pb2.Session, Sequence[session_pb2.Entry]]:
    async with Connection(address, os.environ) as connection:
        calls = connection.client.sessions
        session = await calls.get(key)
        entries: deque[session_pb2.Entry] = deque(maxlen=last or None)
        async for entry in calls.entries(key):
            entries.append(entry)
        return session, entries


@dataclass(slots=True)
class _Page:
    """Writes a conversation to a console."""

    console: Console
    is_full: bool
    _has_entries: bool = False

    def head(self, session: session_pb2.Session) -> None:
        """Which session it is."""
        words = [f"created {moment_text(session.created_at)}"]
        if session.usage.total_tokens:
            words.append(usage_text(session.usage))
        label = f"  {safe(session.label)}" if session.label else ""
        self._line(f"{safe(session.session_key)}{label}", "bold")
        self._line(" | ".join(words), "dim")
        if line := settings_line(session):
            self._line(line, "dim")

    def entry(self, entry: session_pb2.Entry) -> None:
        """The next entry."""
        self._has_entries = True
        match entry.WhichOneof("body"):
            case "user":
                self._title(entry, "user", "bold green")
                self._texts(entry.user.content)
            case "assistant":
                self._assistant(entry)
            case "tool_result":
                self._tool_result(entry.tool_result)
            case "reset":
                self._line("")
                self._line(f"---- reset {moment_text(entry.time)}: the model does not see what is above ----", "yellow")
            case "compaction":
                self._title(entry, "summary of what is above", "bold yellow")
                self._line(safe(entry.compaction.summary))
            case kind:
                self._title(entry, kind or "an entry that this version does not know", "dim")
        if entry.truncated:
            self._line(f"[cut: {entry.total_bytes:,} bytes; `laneway sessions export` has all]", "yellow")

    def _assistant(self, entry: session_pb2.Entry) -> None:
        said = entry.assistant
        who = "/".join(part for part in (said.provider, said.model) if part)
        notes = [safe(who)] if who else []
        if said.stop_reason not in ("stop", "tool_use", ""):
            notes.append(safe(said.stop_reason))
        self._title(entry, "assistant", "bold cyan", *notes)
        for block in said.content:
            match block.WhichOneof("block"):
                case "text":
                    self._line(safe(block.text).rstrip("\n"))
                case "reasoning":
                    self._line(f"(thinking) {safe(block.reasoning)}".rstrip("\n"), "dim italic")
                case "tool_call":
                    call = block.tool_call
                    shown = (
                        safe(call.arguments_json)
                        if self.is_full
                        else short_arguments(call.arguments_json, _ARGUMENT_WIDTH)
                    )
                    self._line(f"> {safe(call.name)} {shown}".rstrip(), "cyan")

    def _tool_result(self, result: session_pb2.ToolResultEntry) -> None:
        outcome, style = outcome_text(result.outcome)
        self._line(f"< {safe(result.name)} {outcome}", style)
        text = "".join(block.text for block in result.content)
        rows = safe(text).splitlines() if self.is_full else excerpt(text, _OUTPUT_LINES, _OUTPUT_WIDTH)
        for row in rows:
            self._line(f"    {row}".rstrip(), "dim")

    def _texts(self, content: Sequence[session_pb2.ContentBlock]) -> None:
        for block in content:
            if block.WhichOneof("block") == "attachment":
                self._line(f"[{safe(block.attachment.name or 'attachment')}, {block.attachment.size:,} bytes]", "dim")
            else:
                self._line(safe(block.text).rstrip("\n"))

    def _title(self, entry: session_pb2.Entry, who: str, style: str, *notes: str) -> None:
        self._line("")
        title = Text.assemble((who, style), ("  " + "  ".join((moment_text(entry.time), *notes)), "dim"))
        self.console.print(title.append(f"  {safe(entry.entry_id)}", "dim"), soft_wrap=True)

    def _line(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style=style), soft_wrap=True)
