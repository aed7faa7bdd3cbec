"""What the client promises, over faults of every kind; more with CLIENT_ROUNDS and CLIENT_SEED in the environment."""

import os
from pathlib import Path

import pytest
from tests.client.faults import FAULTS, FaultEngine

ROUNDS = int(os.environ.get("CLIENT_ROUNDS", "8"))
SEED = int(os.environ.get("CLIENT_SEED", "7"))


@pytest.mark.timeout(120 + 15 * ROUNDS)
async def test_no_event_is_lost_or_doubled_no_run_started_twice_and_no_call_hangs(tmp_path: Path) -> None:
    report = await FaultEngine(tmp_path, seed=SEED).run(ROUNDS)
    assert report.violations == []
    assert sum(report.faults.values()) == ROUNDS
    assert report.faults.keys() == set(FAULTS)
    # The faults met calls at work.
    assert {"UNAVAILABLE", "DEADLINE_EXCEEDED"} <= report.losses.keys()
    assert sum(report.harms.values()) > 0
    assert report.runs > ROUNDS
