"""Each soak in small: its load, its faults and its oracle work. At full length: `make soak`."""

import json
from pathlib import Path

import pytest
from tests.soak.cancelled_calls import MODES, CancelledCalls
from tests.soak.client_faults import ClientFaults
from tests.soak.events.soak import Events
from tests.soak.events.wave import WaveSettings
from tests.soak.exec_aborts import COMMANDS, ExecAborts
from tests.soak.histories import Histories
from tests.soak.kills.soak import Kills
from tests.soak.one_off_sessions import OneOffSessions
from tests.soak.playing import Soak, play
from tests.soak.report import table

pytestmark = pytest.mark.timeout(120)

SEED = 7


async def _counts(soak: Soak, results: Path, rounds: int) -> dict[str, int]:
    """Play it, see that it passed, and what it did."""
    report = await play(soak, results, seed=SEED, rounds=rounds)
    assert report.has_passed, table(report)
    assert json.loads((results / f"{soak.name}.json").read_text())["passed"]
    # Nothing is kept of what found nothing.
    assert not (results / soak.name).exists()
    return report.progress.counts


async def test_histories_of_messages_and_lanes(tmp_path: Path) -> None:
    counts = await _counts(Histories(unit_rounds=10), tmp_path, rounds=20)
    assert counts["messages queued"] > 0
    assert counts["runs succeeded"] > 0


async def test_kills_and_a_drain(tmp_path: Path) -> None:
    counts = await _counts(Kills(unit_rounds=2, sessions=3), tmp_path, rounds=2)
    assert counts["restarts on the synced image"] == 1
    assert sum(count for name, count in counts.items() if name.startswith("drains by")) == 1
    assert counts["runs"] > 0


async def test_events_over_cut_connections_and_a_restart(tmp_path: Path) -> None:
    settings = WaveSettings(sessions=2, of_all=1, of_session=1, of_run=3, stay_events=200, disturb_events=800)
    counts = await _counts(Events(unit_rounds=8000, settings=settings), tmp_path, rounds=8000)
    assert counts["calls cancelled by their clients"] > 0
    assert counts["calls lost"] > 0
    assert counts.get("server kills", 0) + counts.get("server drains", 0) == 1


async def test_sessions_that_are_used_once(tmp_path: Path) -> None:
    counts = await _counts(OneOffSessions(unit_rounds=45, is_filled=False), tmp_path, rounds=90)
    assert counts == {"ended": 60, "aborted while queued": 30}


async def test_aborts_of_running_commands(tmp_path: Path) -> None:
    counts = await _counts(ExecAborts(unit_rounds=len(COMMANDS), is_filled=False), tmp_path, rounds=len(COMMANDS))
    assert counts["aborted when ready"] > 0


async def test_subscriptions_that_are_left_in_each_way(tmp_path: Path) -> None:
    counts = await _counts(
        CancelledCalls(unit_rounds=20, units_a_turn=1, is_filled=False), tmp_path, rounds=20 * len(MODES)
    )
    assert {mode: counts[mode] for mode in MODES} == dict.fromkeys(MODES, 20)
    assert {"channels closed", "channels reset"} <= counts.keys()


async def test_faults_under_a_client(tmp_path: Path) -> None:
    counts = await _counts(ClientFaults(unit_rounds=1), tmp_path, rounds=1)
    assert sum(count for name, count in counts.items() if name.startswith("faults: ")) == 1
    assert counts["runs"] > 0
