"""Plays a soak unit by unit, keeps what came out after each, and goes on where an earlier start was stopped."""

import contextlib
import json
import shutil
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.soak.progress import Progress, ProgressFile, UnitResult
from tests.soak.report import Figure, Report, figures_of

BROKEN = "broke-off.txt"
MOST_BROKEN = 3
"""A soak that breaks off so often in one start is given up."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one start of a soak works. What lies in `folder` goes when the start found nothing."""

    folder: Path
    seed: int


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of work. Its seed depends on the soak's seed and its number only."""

    number: int
    rounds: int
    rounds_before: int
    seed: int


PlayUnit = Callable[[Unit], Awaitable[UnitResult]]


class Soak(Protocol):
    """One kind of long run."""

    name: str
    rounds_are: str
    default_rounds: int
    unit_rounds: int
    """The rounds of a unit: what is lost when the soak is stopped."""

    def opened(self, place: Place) -> AbstractAsyncContextManager[PlayUnit]:
        """What lasts over the units of one start: mostly a server."""

    def figures(self, progress: Progress) -> list[Figure]:
        """What is judged over all units."""


def seed_of_unit(seed: int, number: int) -> int:
    """Different for all units of all soaks with near seeds."""
    return seed * 1_000_003 + number


async def play(
    soak: Soak, results: Path, *, seed: int, rounds: int | None = None, say: Callable[[str], None] = lambda _: None
) -> Report:
    """Do what is left of `rounds`; None = as before, or the default. Writes `<soak>.json`."""
    file = ProgressFile(results, soak.name)
    progress = file.load() or Progress(soak.name, seed, soak.default_rounds)
    if progress.seed != seed:
        raise ValueError(f"{results} has a soak with the seed {progress.seed}")
    progress.wanted = rounds or progress.wanted
    broken = 0
    while progress.rounds < progress.wanted and broken < MOST_BROKEN:
        broken += await _start(soak, results, progress, file, say)
    report = Report(soak.name, soak.rounds_are, progress, figures_of(progress, soak.figures(progress)))
    (results / f"{soak.name}.json").write_text(json.dumps(report.as_json(), indent=1, ensure_ascii=False))
    return report


async def _start(soak: Soak, results: Path, progress: Progress, file: ProgressFile, say: Callable[[str], None]) -> bool:
    """One start, up to the end or to what breaks it off; whether something did."""
    segment = progress.segments
    progress.segments += 1
    file.save(progress)
    place = Place(results / soak.name / f"start-{segment}", progress.seed)
    place.folder.mkdir(parents=True)
    before = len(progress.units)
    began = time.monotonic()
    try:
        async with soak.opened(place) as play_unit:
            while progress.rounds < progress.wanted:
                unit = _next_unit(soak, progress)
                began = time.monotonic()
                result = await play_unit(unit)
                result.number, result.segment, result.seconds = unit.number, segment, time.monotonic() - began
                progress.units.append(result)
                file.save(progress)
                say(_line(soak, progress, result))
    except Exception as error:  # noqa: BLE001 - whatever broke it off is a finding, and the soak goes on
        text = f"broke off: {'; '.join(_causes(error))} (see {place.folder / BROKEN})"
        (place.folder / BROKEN).write_text(traceback.format_exc())
        broken = UnitResult(violations=[text], number=len(progress.units), segment=segment)
        broken.seconds = time.monotonic() - began
        progress.units.append(broken)
        file.save(progress)
        say(f"{soak.name}: {text}")
        return True
    finally:
        if not any(unit.violations for unit in progress.units[before:]):
            _remove(place.folder)
    return False


def _remove(folder: Path) -> None:
    """With the folder around it, unless an earlier start has left something there."""
    shutil.rmtree(folder)
    with contextlib.suppress(OSError):
        folder.parent.rmdir()


def _causes(error: BaseException) -> list[str]:
    """What happened, without the groups around it."""
    if isinstance(error, BaseExceptionGroup):
        return [text for one in error.exceptions for text in _causes(one)]
    return [" ".join(f"{type(error).__name__}: {error}".split())[:500]]


def _next_unit(soak: Soak, progress: Progress) -> Unit:
    number, done = len(progress.units), progress.rounds
    return Unit(number, min(soak.unit_rounds, progress.wanted - done), done, seed_of_unit(progress.seed, number))


def _line(soak: Soak, progress: Progress, result: UnitResult) -> str:
    rate = result.rounds / result.seconds if result.seconds else 0.0
    left_s = (progress.wanted - progress.rounds) / rate if rate else 0.0
    found = f", {len(result.violations)} VIOLATIONS" if result.violations else ""
    return (
        f"{soak.name}: {progress.rounds:,} of {progress.wanted:,} {soak.rounds_are}, {rate:,.4g}/s, "
        f"{max(0.0, left_s):,.0f} s left{found}"
    )
