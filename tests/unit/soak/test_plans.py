"""tests/soak/kills/plans.py: what a seed asks for."""

import pytest
from tests.processes.failpoints import KILL_KINDS
from tests.soak.kills.plans import DRAINS, plans


@pytest.mark.parametrize("seed", [1, 2])
def test_half_of_the_kills_are_power_cuts_and_every_fifth_is_followed_by_a_drain(seed: int) -> None:
    lives = plans(seed, kills=120, synced_share=0.5)
    killed = [life for life in lives if not life.drain]
    assert len(killed) == 120
    assert sum(life.is_power_cut for life in killed) == 60
    assert sum(life.is_patient for life in killed) == 40
    assert [life.drain for life in lives].count("") == 120
    assert {life.drain for life in lives if life.drain} == set(DRAINS)
    assert len(lives) == 144
    places = {(life.failpoint.side, life.failpoint.kind) for life in killed if life.failpoint}
    assert places == {(side, kind) for side in ("before", "after") for kind in KILL_KINDS}


def test_the_same_seed_asks_for_the_same() -> None:
    assert plans(5, kills=25, synced_share=0.5) == plans(5, kills=25, synced_share=0.5)
    assert plans(5, kills=25, synced_share=0.5) != plans(6, kills=25, synced_share=0.5)


def test_few_kills_have_a_drain_too() -> None:
    assert [bool(life.drain) for life in plans(5, kills=2, synced_share=0.5)] == [False, False, True]
