"""When a store that stays down ends the process (D-19)."""

from tests.fakes.fake_clock import FakeClock

from lanewayd.wiring.stall_exit import STALLED_EXIT_CODE, StallExit


async def test_a_store_that_stays_down_ends_the_process_and_one_that_works_again_does_not() -> None:
    clock, codes = FakeClock(), list[int]()
    stall_exit = StallExit(60.0, clock=clock, exit_now=codes.append)
    stall_exit.store_works(False)
    await clock.advance(59.9)
    stall_exit.store_works(True)
    await clock.advance(60.0)
    assert codes == []
    stall_exit.store_works(False)
    await clock.advance(59.9)
    assert codes == []
    await clock.advance(0.1)
    assert codes == [STALLED_EXIT_CODE]


async def test_a_process_that_leaves_by_itself_is_not_ended() -> None:
    clock, codes = FakeClock(), list[int]()
    stall_exit = StallExit(60.0, clock=clock, exit_now=codes.append)
    stall_exit.disarm()
    stall_exit.store_works(False)
    stall_exit.disarm()
    await clock.advance(120.0)
    assert codes == []
