"""`laneway demo`: one agent turn with a tool call on a server of its own, each promise checked and told in a line."""

import json as json_text
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from laneway.cli.address import socket_path
from laneway.cli.connection import Connection
from laneway.cli.exits import CliError, ExitCode
from laneway.cli.options import JsonOption, run_async
from laneway.cli.render import RunView
from laneway.cli.server_process import ServerProcess
from laneway.cli.text import seconds_text
from laneway.v1 import agent_pb2, event_pb2, run_pb2

_MODEL = "scripted/demo"
_MESSAGE = "Write a haiku into haiku.txt and count its words."
_WORD_COUNT = "15"
_WAIT_S = 30.0
# The model of this demonstration plays a script; server, tools, store and stream are the real ones.
_SCRIPT = """\
turns:
  - text: ["I write ", "the haiku ", "into a file ", "and count its words."]
    delay_s: 0.05
    tool_calls:
      - name: write
        arguments:
          path: haiku.txt
          content: |
            One lane, then the next
            each message waits for its turn
            nothing said is lost
    usage: {input_tokens: 180, output_tokens: 42}
  - tool_calls:
      - name: exec
        arguments: {command: "wc -w < haiku.txt"}
    usage: {input_tokens: 240, output_tokens: 18}
  - text: ["Done: ", "haiku.txt ", "has this many words: ", "${tool_result}"]
    delay_s: 0.05
    usage: {input_tokens: 270, output_tokens: 12}
"""


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Keep the scratch home, as after a failure.")] = False,
    json: JsonOption = False,
) -> None:
    """Show and check one agent turn: a server, a message, a tool call, the replay, the result.

    Needs no settings and no key, and touches nothing outside of a scratch folder.

    The exit code is 0 only if every step held.

    Examples:
      laneway demo
      laneway demo --json
    """
    report = _Report(Console(highlight=False), is_json=json)
    home = Path(tempfile.mkdtemp(prefix="laneway-demo-"))
    try:
        run_async(_demo(home, report))
    except CliError as error:
        report.step("the demonstration came to its end", holds=False, detail=str(error))
    if report.has_failed or keep:
        report.say(f"the scratch home is kept: {home}")
    else:
        shutil.rmtree(home, ignore_errors=True)
    raise typer.Exit(int(ExitCode.RUN_FAILED if report.has_failed else ExitCode.OK))


@dataclass(slots=True)
class _Report:
    """Tells each step in a line and remembers whether all held."""

    console: Console
    is_json: bool
    has_failed: bool = False

    def step(self, claim: str, *, holds: bool, detail: str = "") -> None:
        """A claim, and whether it was true."""
        self.has_failed = self.has_failed or not holds
        if self.is_json:
            print(json_text.dumps({"step": claim, "ok": holds, "detail": detail}), flush=True)
            return
        style = "bold green" if holds else "bold red"
        self.console.print("[ok]" if holds else "[FAILED]", style=style, end=" ", markup=False)
        self.console.print(f"{claim}: {detail}" if detail else claim, markup=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """A line that claims nothing."""
        if not self.is_json:
            self.console.print(text, style="dim", markup=False, soft_wrap=True)


async def _demo(home: Path, report: _Report) -> None:
    (home / "scripts").mkdir()
    (home / "scripts" / "demo.yaml").write_text(_SCRIPT, encoding="utf-8")
    address = f"unix:{socket_path(home)}"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LANEWAY_")}
    started = time.monotonic()
    process = ServerProcess.start(home, [f"--listen={address}", "--idle-exit=60"], environ)
    try:
        await process.answers(address)
        took = seconds_text(time.monotonic() - started)
        report.step("a server is running", holds=True, detail=f"process {process.pid} on {address}, ready in {took}")
        await _turn(address, environ, report)
        exit_status = await process.stop()
        report.step(
            "the server leaves in order when it is told to", holds=exit_status == 0, detail=f"exit code {exit_status}"
        )
    finally:
        if process.is_running:
            await process.stop()
        process.forget()


async def _turn(address: str, environ: Mapping[str, str], report: _Report) -> None:
    """One message, from acceptance to the comparison of all that can be read about its run."""
    async with Connection(address, environ) as connection:
        client = connection.client
        request = agent_pb2.AgentRequest(message=_MESSAGE, model=_MODEL, session_key="demo", idempotency_key="demo")
        sent = time.monotonic()
        response = await client.agent(request)
        took = seconds_text(time.monotonic() - sent)
        report.step("the message is durable before it is answered", holds=True, detail=f"{response.run_id} in {took}")
        report.say(f"$ laneway agent {_MESSAGE!r}")
        view = None if report.is_json else RunView(report.console)
        seen = _Seen()
        async for event in client.subscribe(_log(response.run_id)):
            seen.events.append(event)
            if view is not None:
                view.show(event)
        _check_run(seen, report)
        replay = [event async for event in client.subscribe(_log(response.run_id))]
        is_same = [_encoded(event) for event in replay] == [_encoded(event) for event in seen.events]
        detail = f"{len(replay)} events, byte for byte"
        report.step("a later subscription replays the same events", holds=is_same, detail=detail)
        half = len(replay) // 2
        rest = [event async for event in client.subscribe(_log(response.run_id, after_seq=half))]
        holds = [_encoded(event) for event in rest] == [_encoded(event) for event in replay[half:]]
        report.step("a subscription resumes in the middle", holds=holds, detail=f"after event {half}")
        answer = await client.wait(response.run_id, timeout_s=_WAIT_S)
        report.step(
            "Wait says the same as the stream", holds=seen.agrees_with(answer), detail=_state_name(answer.state)
        )


def _log(run_id: str, *, after_seq: int = 0) -> agent_pb2.SubscribeRequest:
    return agent_pb2.SubscribeRequest(run_id=run_id, after_seq=after_seq, verbose=agent_pb2.VERBOSITY_FULL)


def _check_run(seen: "_Seen", report: _Report) -> None:
    end = seen.end
    report.step("the run succeeded", holds=end.state == run_pb2.RUN_STATE_SUCCEEDED, detail=_state_name(end.state))
    seqs = [event.seq for event in seen.events]
    report.step(
        "events are numbered without a gap", holds=seqs == list(range(1, len(seqs) + 1)), detail=f"1 to {len(seqs)}"
    )
    results = seen.tool_results
    holds = [result.name for result in results] == ["write", "exec"] and all(
        result.outcome == event_pb2.TOOL_OUTCOME_OK for result in results
    )
    report.step("both tool calls came back OK", holds=holds, detail=", ".join(result.name for result in results))
    last_text = seen.last_text
    report.step("the answer holds what the tool found", holds=_WORD_COUNT in last_text, detail=last_text.strip())


@dataclass(slots=True)
class _Seen:
    """What a subscriber knows of a run."""

    events: list[event_pb2.Event] = field(default_factory=list)

    @property
    def end(self) -> event_pb2.LifecycleEvent:
        """The terminal event; an empty one if there was none."""
        return self.events[-1].lifecycle if self.events else event_pb2.LifecycleEvent()

    @property
    def tool_results(self) -> list[event_pb2.ToolEvent]:
        """How each tool call ended."""
        tools = [event.tool for event in self.events if event.WhichOneof("payload") == "tool"]
        return [tool for tool in tools if tool.phase == event_pb2.TOOL_PHASE_RESULT]

    @property
    def last_text(self) -> str:
        """The text of the last message."""
        messages = [event.message for event in self.events if event.WhichOneof("payload") == "message"]
        return messages[-1].text if messages else ""

    def agrees_with(self, answer: agent_pb2.WaitResponse) -> bool:
        """Whether a wait says the same: state, reason, times, usage, text."""
        end = self.end
        return (
            (answer.state, answer.stop_reason) == (end.state, end.stop_reason)
            and (answer.started_at, answer.ended_at, answer.usage) == (end.started_at, end.ended_at, end.usage)
            and "".join(payload.text for payload in answer.payloads) == self.last_text
        )


def _encoded(event: event_pb2.Event) -> bytes:
    return event.SerializeToString(deterministic=True)


def _state_name(state: run_pb2.RunState) -> str:
    return run_pb2.RunState.Name(state)
