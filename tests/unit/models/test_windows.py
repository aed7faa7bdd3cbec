import pytest

from lanewayd.models.windows import Room, window


@pytest.mark.parametrize(
    ("native", "entry_tokens", "agent_cap", "used"),
    [
        (200_000, None, None, 200_000),
        (200_000, 50_000, None, 50_000),
        (200_000, 50_000, 20_000, 20_000),
        (200_000, 50_000, 90_000, 50_000),
        (200_000, None, 300_000, 200_000),
    ],
)
def test_what_is_used_of_a_window(native: int, entry_tokens: int | None, agent_cap: int | None, used: int) -> None:
    assert window(native=native, entry_tokens=entry_tokens, agent_cap=agent_cap).used == used


@pytest.mark.parametrize(
    ("native", "used", "room"),
    [
        (30_000, 3_999, Room.TOO_LITTLE),
        (30_000, 4_000, Room.SMALL),
        (30_000, 7_999, Room.SMALL),
        (30_000, 8_000, Room.ENOUGH),
        (200_000, 19_999, Room.TOO_LITTLE),
        (200_000, 20_000, Room.SMALL),
        (200_000, 39_999, Room.SMALL),
        (200_000, 40_000, Room.ENOUGH),
        (2_000, 2_000, Room.TOO_LITTLE),
    ],
)
def test_the_room_there_is(native: int, used: int, room: Room) -> None:
    assert window(native=native, entry_tokens=used, agent_cap=None).room is room
