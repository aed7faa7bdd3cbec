"""The steps of a demonstration: carried out one after the other, each claim checked, the first that fails ends it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, NoReturn, Protocol, TypeVar

from laneway.cli.exits import CliError, call_failed
from laneway.errors import LanewayError
from laneway.v1 import event_pb2

STEP_LIMIT_S = 60.0
Stage = TypeVar("Stage")


@dataclass(frozen=True, slots=True)
class Check:
    """A claim, whether it held, and what was seen; `expected` is for a claim that did not hold."""

    claim: str
    holds: bool
    found: str = ""
    expected: str = ""


@dataclass(frozen=True, slots=True)
class Step(Generic[Stage]):
    """`why`: what there is to see, in a line. `act` makes its checks on the stage's report."""

    title: str
    why: str
    act: Callable[[Stage], Awaitable[None]]


@dataclass(slots=True)
class Outcome:
    """What came out of a step."""

    number: int
    title: str
    checks: list[Check] = field(default_factory=list)
    took_s: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether it was checked and every claim held."""
        return bool(self.checks) and all(check.holds for check in self.checks)


class View(Protocol):
    """Where the demonstration is shown."""

    def begin(self, number: int, title: str, why: str) -> None:
        """The next step."""

    def sent(self, message: str) -> None:
        """A message was handed over; its run comes."""

    def show(self, event: event_pb2.Event) -> None:
        """The next event of the run."""

    def note(self, text: str) -> None:
        """Something else that happens."""

    def checked(self, check: Check) -> None:
        """A claim and its truth."""

    def ended(self, outcome: Outcome) -> None:
        """The step is over."""


class Unprepared(CliError):
    """Something is missing on this machine; the text says what to do. No claim was wrong."""


class StepFailed(Exception):
    """A claim did not hold; it has been shown."""


class Report:
    """Owner of what was checked."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.outcomes: list[Outcome] = []

    def begin(self, title: str, why: str) -> None:
        """The next step."""
        outcome = Outcome(len(self.outcomes) + 1, title)
        self.outcomes.append(outcome)
        self.view.begin(outcome.number, title, why)

    def check(self, claim: str, holds: bool, *, found: str = "", expected: str = "") -> None:
        """Show the claim. Raises StepFailed if it does not hold; `expected` says then what should have been."""
        check = Check(claim, holds, found, "" if holds else expected or "that it is so")
        self.outcomes[-1].checks.append(check)
        self.view.checked(check)
        if not holds:
            raise StepFailed(claim)

    def fail(self, claim: str, *, found: str, expected: str) -> NoReturn:
        """A claim that does not hold."""
        self.check(claim, False, found=found, expected=expected)
        raise AssertionError("a claim that does not hold ends the step")

    @property
    def holds(self) -> bool:
        """Whether every step held."""
        return bool(self.outcomes) and all(outcome.holds for outcome in self.outcomes)


async def run_steps(
    steps: Sequence[Step[Stage]], stage: Stage, report: Report, *, limit_s: float = STEP_LIMIT_S
) -> bool:
    """Carry out `steps` up to the first that fails; whether all held. A step may take `limit_s`. Raises Unprepared."""
    for step in steps:
        began = time.monotonic()
        report.begin(step.title, step.why)
        outcome = report.outcomes[-1]
        with suppress(StepFailed):
            await _carry_out(step, stage, report, limit_s)
        outcome.took_s = time.monotonic() - began
        report.view.ended(outcome)
        if not outcome.holds:
            return False
    return True


async def _carry_out(step: Step[Stage], stage: Stage, report: Report, limit_s: float) -> None:
    try:
        async with asyncio.timeout(limit_s):
            await step.act(stage)
    except TimeoutError:
        report.fail("the step comes to its end", found="it does not", expected=f"an end within {limit_s:g} s")
    except Unprepared:
        raise
    except LanewayError as error:
        report.fail("every call succeeds", found=str(call_failed(error)), expected="an answer")
    except CliError as error:
        report.fail("the server does its part", found=str(error), expected="that it starts and answers")
    if not report.outcomes[-1].checks:
        report.fail("the step is checked", found="no check", expected="at least one")
