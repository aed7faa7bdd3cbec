"""Twenty kills under load, half of the restarts after a power cut: nothing is lost, doubled or shown wrongly."""

from pathlib import Path

import pytest
from tests.soak.engine import KillEngine, plans

SEED = 20


@pytest.mark.timeout(300)
async def test_twenty_kills_leave_no_trace_in_what_anybody_sees(tmp_path: Path, synced_library: Path) -> None:
    lives = plans(SEED, kills=20, synced_share=0.5)
    report = await KillEngine(tmp_path, synced_library, seed=SEED).run(lives)
    assert report.violations == []
    assert (report.kills, report.power_cuts, report.exit_code) == (20, 10, 0)
    assert {life.ended_by for life in report.lives} == {"signal", "failpoint"}
    # The kills met runs at work, and tools that had begun.
    assert report.most_attempts > 1
    assert report.outcomes["TOOL_OUTCOME_UNKNOWN"] > 0
    assert report.outcomes["TOOL_OUTCOME_OK"] > 0
