"""What the doctor finds, and how its checks are carried out: side by side, each within its limit."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    """The service works; something will not, or may not soon."""
    FAIL = "fail"
    """The service does not start, or runs fail."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `text` says what is so, `advice` what to do; never a secret in either."""

    check: str
    level: Level
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One look. `look` may be cancelled at any time."""

    name: str
    look: Callable[[], Awaitable[Sequence[Finding]]]
    limit_s: float = 5.0


async def run_checks(checks: Sequence[Check]) -> list[Finding]:
    """The findings of all checks, in their order. One that is not done within its limit, or to which the system refuses
    what it asks for, is a finding too."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_within_limit(check), name=f"check {check.name}") for check in checks]
    return [finding for task in tasks for finding in task.result()]


async def in_thread(look: Callable[[], T]) -> T:
    """Call what may block for ever, in a thread that keeps no process from ending: a dead network disk does not let
    go of who asks it."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def tell(set_outcome: Callable[[], None]) -> None:
        if not answer.done():
            set_outcome()

    def call() -> None:
        try:
            result = look()
        except Exception as error:  # noqa: BLE001 - handed on to who waits
            failure = error
            outcome = lambda: answer.set_exception(failure)  # noqa: E731
        else:
            outcome = lambda: answer.set_result(result)  # noqa: E731
        with suppress(RuntimeError):  # nobody waits any more: the loop is closed
            loop.call_soon_threadsafe(tell, outcome)

    threading.Thread(target=call, name="check", daemon=True).start()
    return await answer


async def _within_limit(check: Check) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(check.limit_s):
            return await check.look()
    except TimeoutError:
        text = f"no answer within {check.limit_s:g} s"
        return [Finding(check.name, Level.FAIL, text, "What is asked hangs: a disk, a name server or a process.")]
    except OSError as error:
        advice = "Look at that place yourself: it is not what a server needs, or this user may not see it."
        return [Finding(check.name, Level.FAIL, f"the system refuses to tell: {error}", advice)]
