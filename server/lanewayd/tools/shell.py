"""`exec`: a shell command in the agent's workspace, in the foreground (spec 06, 1.2).

The command is not confined: it may do what the service's user may do. It gets an allow-listed environment, no input,
and ends with everything it started - also what it left in the background - when the call returns. Output of both
streams comes in the order it was written. Not zero is an error result with the code in its text.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from lanewayd.clock import Clock
from lanewayd.messages import ToolSpec
from lanewayd.tools.children import ChildCause, ChildCommand, ChildEnd, ChildProcesses
from lanewayd.tools.environment import MARKER_VARIABLE, inherited_environment, split_overrides
from lanewayd.tools.interface import ToolContext, ToolResult
from lanewayd.tools.live_report import REPORTED_CHARS, LiveReport
from lanewayd.tools.output import OutputCollector
from lanewayd.tools.result_limits import NO_OUTPUT, result_limit_chars

DEFAULT_TIMEOUT_S = 1800.0
_MAX_TIMEOUT_S = 30 * 86_400.0
_NOTES_ROOM_CHARS = 1_000
_SHELLS = ("/bin/bash", "/bin/sh")

_SPEC = ToolSpec(
    name="exec",
    description=(
        "Run a shell command (also known as bash) in the workspace and return its output, stdout and stderr together. "
        "It has no input and no terminal. When the command ends, everything it left in the background is ended too. "
        "A long output is cut in the middle; filter it or send it to a file."
    ),
    schema={
        "type": "object",
        "properties": {
            "command": {"type": "string", "minLength": 1, "description": "The command line, for a POSIX shell."},
            "workdir": {"type": "string", "description": "Where to run it; default: the workspace."},
            "env": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "More environment variables. PATH and variables of loaders are not accepted.",
            },
            "timeoutSeconds": {
                "type": "number",
                "minimum": 0,
                "description": "End the command after this time; default 1800, 0 = no limit.",
            },
        },
        "required": ["command"],
    },
)


class ExecTool:
    """The tool. It has no state of its own; `children` starts and ends the processes."""

    def __init__(
        self,
        *,
        children: ChildProcesses,
        clock: Clock,
        environment: Mapping[str, str],
        passed_on: Iterable[str] = (),
        address: Callable[[], str] = str,
        default_timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        """`environment` is the service's; `passed_on` the names of tools.exec.env; `address` where it listens.

        `default_timeout_s`: of a call that names none; 0 = no limit.
        """
        self._children = children
        self._clock = clock
        self._environment = inherited_environment(environment, passed_on)
        self._address = address
        self._default_timeout_s = default_timeout_s
        self._shell = next((shell for shell in _SHELLS if Path(shell).exists()), _SHELLS[-1])

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    @property
    def is_idempotent(self) -> bool:
        return False

    @property
    def is_sequential(self) -> bool:
        return False

    def limit_s(self, arguments: dict[str, Any]) -> float:
        """Implements tools.interface.SelfLimited."""
        return min(float(arguments.get("timeoutSeconds", self._default_timeout_s)), _MAX_TIMEOUT_S)

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        overrides, refused = split_overrides(arguments.get("env") or {})
        notes = [f"[not set, because exec does not accept them: {', '.join(refused)[:400]}]"] if refused else []
        command = self._command(arguments, context, overrides)
        output = OutputCollector()
        live = LiveReport(clock=self._clock, render=lambda: output.text(REPORTED_CHARS), send=context.report)

        def take(chunk: bytes) -> None:
            output.feed(chunk)
            live.changed()

        try:
            end = await self._children.run(command, take)
        except asyncio.CancelledError:
            output.finish()
            live.send_now()
            raise
        except (OSError, ValueError) as error:
            # ValueError: a NUL or a lone surrogate, which no process argument can hold.
            return ToolResult(_not_started(error, command), is_error=True)
        finally:
            live.close()
        output.finish()
        return _result(output, end, command, notes, result_limit_chars(context.context_window_tokens))

    def _command(self, arguments: dict[str, Any], context: ToolContext, overrides: Mapping[str, str]) -> ChildCommand:
        timeout_s = self.limit_s(arguments)
        home = self._environment.get("HOME", str(context.workspace))
        workdir = str(arguments.get("workdir") or ".")
        if workdir == "~" or workdir.startswith("~/"):
            workdir = home + workdir[1:]
        return ChildCommand(
            run_id=context.run_id,
            call_id=context.call_id,
            argv=(self._shell, "-c", arguments["command"]),
            directory=context.workspace / workdir,
            environment={
                **self._environment,
                **overrides,
                MARKER_VARIABLE: "1",
                "LANEWAY_ADDRESS": self._address(),
            },
            timeout_s=timeout_s if timeout_s > 0 else None,
        )


def _not_started(error: OSError | ValueError, command: ChildCommand) -> str:
    if isinstance(error, OSError) and error.filename is not None and not command.directory.is_dir():
        return f"The command was not started: {command.directory} is no directory."
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return f"The command was not started: {reason}."


def _result(
    output: OutputCollector, end: ChildEnd, command: ChildCommand, notes: list[str], limit_chars: int
) -> ToolResult:
    """The output and, in brackets after it, what else there is to say; the notes survive any limit."""
    is_error = True
    if end.cause is ChildCause.TIMED_OUT:
        notes.append(f"[timed out after {command.timeout_s:g} s; the command and what it started were ended]")
    elif end.exit_code < 0:
        notes.append(f"[ended by signal {-end.exit_code}{_signal_name(-end.exit_code)}]")
    elif end.exit_code > 0:
        notes.append(f"[exit code {end.exit_code}]")
    else:
        is_error = False
        if end.left_over_count:
            notes.append(f"[{end.left_over_count} background processes were ended with the call]")
    text = output.text(limit_chars - _NOTES_ROOM_CHARS)
    if not text.strip():
        text = NO_OUTPUT
    if notes:
        text = text.rstrip("\n") + "\n\n" + "\n".join(notes)
    return ToolResult(text, is_error=is_error)


def _signal_name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""
