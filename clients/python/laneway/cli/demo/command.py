"""`laneway demo`: what Laneway promises, shown on a server of its own with the embedded model, each claim checked."""

import json as json_text
import os
import time
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from laneway.cli.demo.report import Report, Step, run_steps
from laneway.cli.demo.screen import JsonLines, Screen
from laneway.cli.demo.stage import Stage
from laneway.cli.demo.steps import STEPS
from laneway.cli.exits import ExitCode
from laneway.cli.options import JsonOption, run_async
from laneway.cli.text import seconds_text


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Keep the scratch home, as after a failure.")] = False,
    json: JsonOption = False,
) -> None:
    """Show what Laneway promises with the embedded model, and check each promise.

    Starts a server on a scratch home, talks, uses a tool, loses a connection, kills the server in the middle of an
    answer. Needs no settings, key or network, and touches nothing outside of a scratch folder.

    The exit code is 0 only if every step held.

    Examples:
      laneway demo
      laneway demo --json | jq -r '.checks[]? | .claim'
    """
    screen = None if json else Screen(Console(highlight=False))
    report = Report(screen or JsonLines())
    raise typer.Exit(int(run_async(show(STEPS, report, screen, keep=keep))))


async def show(steps: Sequence[Step[Stage]], report: Report, screen: Screen | None, *, keep: bool) -> ExitCode:
    """Carry out `steps` on a stage of their own; the exit code of the command.

    `screen`: the view of `report` if that is for people. Nothing is left but, after a failure or with `keep`, the home.
    """
    began = time.monotonic()
    stage = Stage(report, os.environ)
    keeps_home = keep
    if screen is not None:
        screen.line(f"Laneway, shown and checked: each line with {screen.good} was true when it was printed.", "bold")
    try:
        holds = await run_steps(steps, stage, report)
        keeps_home = keep or not holds
    finally:
        if screen is not None:
            screen.close()
        await stage.end(keep=keeps_home)
    _sum_up(report, screen, holds=holds, took_s=time.monotonic() - began)
    if screen is not None and keeps_home:
        screen.line(f"the scratch home is kept, with the server's log in run/server.log: {stage.home}", "dim")
    return ExitCode.OK if holds else ExitCode.RUN_FAILED


def _sum_up(report: Report, screen: Screen | None, *, holds: bool, took_s: float) -> None:
    checks = [check for outcome in report.outcomes for check in outcome.checks]
    held = sum(check.holds for check in checks)
    if screen is None:
        fields = {"ok": holds, "steps": len(report.outcomes), "checks": len(checks), "held": held}
        print(json_text.dumps({**fields, "took_s": round(took_s, 3)}, separators=(",", ":")), flush=True)
        return
    screen.gap()
    if not holds:
        screen.line(f"Step {len(report.outcomes)} did not hold; the demo ends here.", "bold red")
        return
    screen.line(f"All {len(report.outcomes)} steps held, {held} checks, in {seconds_text(took_s)}.", "bold green")
    screen.line(
        "The embedded model talks, errs in simple facts and cannot choose tools. For a real one set OPENAI_API_KEY, or "
        "name any OpenAI-compatible service or Ollama in laneway.toml; `laneway doctor` tells what is missing."
    )
