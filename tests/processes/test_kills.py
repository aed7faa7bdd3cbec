"""Twenty kills and four drains under load, half of the restarts after a power cut: nothing is lost or doubled."""

from pathlib import Path

import grpc
import pytest
from tests.fakes.service import refusal_of
from tests.soak.kills.engine import KillEngine
from tests.soak.kills.plans import DRAINS, plans

SEED = 20


@pytest.mark.timeout(300)
async def test_twenty_kills_leave_no_trace_in_what_anybody_sees(tmp_path: Path, synced_library: Path) -> None:
    lives = plans(SEED, kills=20, synced_share=0.5)
    report = await KillEngine(tmp_path, synced_library, seed=SEED).run(lives)
    assert report.violations == []
    assert (report.kills, report.power_cuts, report.exit_code) == (20, 10, 0)
    assert {life.ended_by for life in report.lives} == {"kill", "failpoint", *DRAINS}
    # The kills met runs at work, and tools that had begun.
    assert report.most_attempts > 1
    assert report.outcomes["TOOL_OUTCOME_UNKNOWN"] > 0
    assert report.outcomes["TOOL_OUTCOME_OK"] > 0


@pytest.mark.timeout(120)
async def test_the_same_kills_are_noticed_when_the_store_does_not_sync(tmp_path: Path, synced_library: Path) -> None:
    """Else the test above would prove nothing about power cuts."""
    lives = plans(SEED, kills=3, synced_share=1.0)
    with pytest.raises(ExceptionGroup) as caught:
        await KillEngine(tmp_path, synced_library, seed=SEED, is_synced=False).run(lives)
    lost = [error for error in caught.value.exceptions if isinstance(error, grpc.aio.AioRpcError)]
    assert {refusal_of(error).reason for error in lost} == {"RUN_NOT_FOUND"}
