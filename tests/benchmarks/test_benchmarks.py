"""The benchmarks work: a quick run of some measures gives figures that can be true. How good they are is not tested."""

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.benchmarks.figures import bounded, compared, percentile

REPOSITORY = Path(__file__).parents[2]


async def test_a_quick_run_of_some_measures_gives_sane_json(tmp_path: Path) -> None:
    report_file = tmp_path / "report.json"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.benchmarks", "P4", "P12", "D2", "--quick", "--repetitions", "1", "--json", str(report_file)),
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()

    assert process.returncode == 0, errors.decode()
    assert b"failed" not in errors
    report = json.loads(report_file.read_text())
    assert report["model"]["answers_per_s"] > 0
    assert [row["measure"] for row in report["rows"]] == ["P4", "P4", "P12", "D2"]
    for row in report["rows"]:
        assert 0 < row["product"]["lowest"] <= row["product"]["median"] <= row["product"]["highest"]
        assert row["ratio"]["median"] > 0
        assert row["passed"] in ((True, False) if row["target"] else (None,))
        assert row["what"].encode() in output


def test_ratios_are_taken_repetition_by_repetition() -> None:
    row = compared("P0", "something", "ms", [2.0, 20.0, 6.0], [1.0, 10.0, 2.0], floor_name="floor", target=2.0)

    assert row.ratio is not None
    assert (row.ratio.median, row.ratio.lowest, row.ratio.highest) == (2.0, 2.0, 3.0)
    assert row.has_passed


def test_more_is_better_where_the_target_says_at_least() -> None:
    row = compared("P0", "runs/s", "1/s", [5.0], [10.0], floor_name="floor", target=0.6, is_at_least=True)

    assert row.has_passed is False


def test_a_floor_that_measured_nothing_lets_nothing_pass() -> None:
    row = compared("P0", "something", "ms", [2.0], [-0.1], floor_name="floor", target=2.0)

    assert row.has_passed is False


def test_a_limit_of_zero_is_met_by_zero_only() -> None:
    assert bounded("P0", "lost", "", [0], at_most=0).has_passed
    assert bounded("P0", "lost", "", [0, 3, 1], at_most=0).has_passed is False


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([1.0], 0.99) == 1.0
