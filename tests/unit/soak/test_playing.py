"""tests/soak/playing.py: a soak goes on where it was stopped, and whatever breaks it off is a finding."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.soak.__main__ import seed_for
from tests.soak.playing import BROKEN, MOST_BROKEN, Place, PlayUnit, Unit, play
from tests.soak.progress import Progress, UnitResult
from tests.soak.report import Figure, table


class _Counting:
    """A soak that only counts; `fault` is raised in the units with these numbers."""

    name = "counting"
    rounds_are = "numbers"
    default_rounds = 10
    unit_rounds = 4

    def __init__(self, *faulty: int, fault: type[BaseException] = RuntimeError, violation: str = "") -> None:
        self.played: list[Unit] = []
        self.starts = 0
        self._faulty = set(faulty)
        self._fault = fault
        self._violation = violation

    @asynccontextmanager
    async def opened(self, place: Place) -> AsyncGenerator[PlayUnit, None]:
        self.starts += 1
        (place.folder / "trace").write_text("what happened")

        async def play_unit(unit: Unit) -> UnitResult:
            if unit.number in self._faulty:
                self._faulty.discard(unit.number)
                raise self._fault("stopped")
            self.played.append(unit)
            violations = [self._violation] if self._violation else []
            return UnitResult(rounds=unit.rounds, counts={"sum": unit.rounds}, violations=violations)

        yield play_unit

    def figures(self, progress: Progress) -> list[Figure]:
        return [Figure("units", len(progress.units), limit=5)]


async def test_all_rounds_are_done_in_units(tmp_path: Path) -> None:
    soak = _Counting()
    report = await play(soak, tmp_path, seed=3)
    assert [(unit.number, unit.rounds, unit.rounds_before) for unit in soak.played] == [(0, 4, 0), (1, 4, 4), (2, 2, 8)]
    assert len({unit.seed for unit in soak.played}) == 3
    assert report.has_passed
    assert report.progress.counts == {"sum": 10}
    written = json.loads((tmp_path / "counting.json").read_text())
    assert (written["passed"], written["seed"], written["rounds"], len(written["units"])) == (True, 3, 10, 3)
    assert not (tmp_path / "counting").exists()


async def test_a_stopped_soak_goes_on_with_the_unit_that_it_was_stopped_in(tmp_path: Path) -> None:
    whole = _Counting()
    (tmp_path / "whole").mkdir()
    await play(whole, tmp_path / "whole", seed=3)
    stopped = _Counting(1, fault=asyncio.CancelledError)
    with pytest.raises(asyncio.CancelledError):
        await play(stopped, tmp_path, seed=3)
    assert not (tmp_path / "counting").exists()
    again = _Counting()
    report = await play(again, tmp_path, seed=3)
    assert [*stopped.played, *again.played] == whole.played
    assert report.has_passed
    assert (report.progress.segments, report.progress.rounds) == (2, 10)
    assert {unit.segment for unit in report.progress.units} == {0, 1}


async def test_a_soak_that_is_done_is_not_done_again_but_can_be_given_more_rounds(tmp_path: Path) -> None:
    await play(_Counting(), tmp_path, seed=3)
    again = _Counting()
    assert (await play(again, tmp_path, seed=3)).has_passed
    assert again.starts == 0
    more = _Counting()
    report = await play(more, tmp_path, seed=3, rounds=12)
    assert [unit.number for unit in more.played] == [3]
    assert report.progress.rounds == 12


async def test_what_breaks_a_soak_off_is_a_violation_and_the_rest_is_done_all_the_same(tmp_path: Path) -> None:
    soak = _Counting(1)
    report = await play(soak, tmp_path, seed=3)
    assert not report.has_passed
    assert [text.startswith("unit 1: broke off: RuntimeError: stopped (see") for text in report.violations] == [True]
    assert "Traceback" in (tmp_path / "counting" / "start-0" / BROKEN).read_text()
    assert (report.progress.rounds, soak.starts) == (10, 2)
    # What it worked in is kept, that of the start behind it is not.
    assert [path.name for path in (tmp_path / "counting").iterdir()] == ["start-0"]


async def test_a_soak_that_breaks_off_again_and_again_is_given_up(tmp_path: Path) -> None:
    soak = _Counting(*range(10))
    report = await play(soak, tmp_path, seed=3)
    assert soak.starts == MOST_BROKEN
    assert not report.has_passed


async def test_a_violation_fails_the_report_and_keeps_the_folder(tmp_path: Path) -> None:
    report = await play(_Counting(violation="lost"), tmp_path, seed=3, rounds=4)
    assert report.violations == ["unit 0: lost"]
    assert "FAILED" in table(report)
    assert "  - unit 0: lost" in table(report)
    assert (tmp_path / "counting" / "start-0" / "trace").exists()


async def test_a_figure_above_its_limit_fails_the_report(tmp_path: Path) -> None:
    soak = _Counting()
    soak.unit_rounds = 1
    report = await play(soak, tmp_path, seed=3)
    assert report.violations == ["units: 10 , at most 5"]
    assert not report.has_passed


def test_a_results_folder_keeps_its_seed(tmp_path: Path) -> None:
    seed = seed_for(tmp_path / "results", None)
    assert seed_for(tmp_path / "results", None) == seed
    assert seed_for(tmp_path / "results", seed) == seed
    with pytest.raises(ValueError, match=f"has the seed {seed}"):
        seed_for(tmp_path / "results", seed + 1)
