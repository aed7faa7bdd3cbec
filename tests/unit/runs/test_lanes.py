"""LaneBook by example: what D-8 promises to the people behind the runs, and what it costs."""

import gc
import time
import tracemalloc
from collections.abc import Callable

import pytest

from lanewayd.records import Priority
from lanewayd.runs.lanes import LaneBook, Ticket


def ticket(run_id: str, session_key: str = "s", tenant: str = "t", lane: str = "main", **fields: object) -> Ticket:
    return Ticket(run_id, tenant, session_key, lane, **fields)  # type: ignore[arg-type]


def started(book: LaneBook) -> list[str]:
    return [each.run_id for each in book.admit()]


def started_one_by_one(book: LaneBook) -> list[str]:
    """The order in which everything starts when each run ends before the next admission."""
    order: list[str] = []
    while batch := started(book):
        order.extend(batch)
        for run_id in batch:
            book.release(run_id)
    return order


def test_one_run_of_a_session_at_a_time_and_strictly_in_order() -> None:
    book = LaneBook({"main": 8})
    for number in range(3):
        book.enqueue(ticket(f"r{number}", priority=Priority(number - 1)))
    assert started(book) == ["r0"]
    assert started(book) == []
    book.release("r0")
    assert started_one_by_one(book) == ["r1", "r2"]
    assert book.is_empty


def test_a_waiting_session_holds_no_room() -> None:
    book = LaneBook({"main": 2})
    for number in range(5):
        book.enqueue(ticket(f"busy{number}", "busy"))
    book.enqueue(ticket("other", "other"))
    assert started(book) == ["busy0", "other"]


def test_an_unknown_lane_has_one_place_and_a_nested_one_eight() -> None:
    book = LaneBook({"main": 2})
    for number in range(10):
        book.enqueue(ticket(f"o{number}", f"o{number}", lane="mine"))
        book.enqueue(ticket(f"n{number}", f"n{number}", lane="nested.3"))
    book.admit()
    assert ("mine", 1, 1, 9) in book.lanes()
    assert ("nested.3", 8, 8, 2) in book.lanes()
    assert ("main", 2, 0, 0) in book.lanes()


def test_a_lane_of_width_0_starts_nothing() -> None:
    book = LaneBook({"main": 0})
    book.enqueue(ticket("r"))
    assert started(book) == []
    assert book.queued == 1


def test_tenants_are_served_in_turn() -> None:
    book = LaneBook({"main": 1})
    for tenant in "abc":
        for number in range(3):
            book.enqueue(ticket(f"{tenant}{number}", f"s{number}", tenant))
    assert started_one_by_one(book) == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]


@pytest.mark.parametrize("sessions", [1, 100, 10_000])
def test_ten_thousand_queued_runs_of_a_tenant_delay_another_ones_first_run_by_at_most_one(sessions: int) -> None:
    book = LaneBook({"main": 1})
    for number in range(10_000):
        book.enqueue(ticket(f"many{number}", f"s{number % sessions}", "many"))
    assert len(started(book)) == 1
    book.enqueue(ticket("single", "s", "single"))
    book.release("many0")
    order = []
    while "single" not in order:
        order.extend(started(book))
        book.release(order[-1])
    assert len(order) <= 2


def test_priority_orders_sessions_by_their_first_run_only() -> None:
    book = LaneBook({"main": 1})
    book.enqueue(ticket("low first", "mixed", priority=Priority.BACKGROUND))
    book.enqueue(ticket("high behind it", "mixed", priority=Priority.FOREGROUND))
    book.enqueue(ticket("normal", "plain", priority=Priority.NORMAL))
    book.enqueue(ticket("high", "urgent", priority=Priority.FOREGROUND))
    assert started_one_by_one(book) == ["high", "normal", "low first", "high behind it"]


def test_the_session_that_started_longest_ago_comes_first() -> None:
    book = LaneBook({"main": 1})
    for number in range(3):
        for session_key in ("x", "y"):
            book.enqueue(ticket(f"{session_key}{number}", session_key))
    assert started_one_by_one(book) == ["x0", "y0", "x1", "y1", "x2", "y2"]


def test_sessions_that_come_again_do_not_overtake_one_that_has_waited_longer() -> None:
    book = LaneBook({"main": 1})
    for number in range(3):
        book.enqueue(ticket(f"patient{number}", "patient"))
    assert started(book) == ["patient0"]
    book.enqueue(ticket("x0", "x"))
    running, order = "patient0", []
    for number in range(1, 8):  # x and y take turns: while one runs, the other one's next message arrives
        book.release(running)
        [running] = started(book)
        order.append(running)
        session_key = "xy"[number % 2]
        book.enqueue(ticket(f"{session_key}{number}", session_key))
    assert [run_id for run_id in order if run_id.startswith("patient")] == ["patient1", "patient2"]


def test_one_run_at_a_time_passes_the_gate_and_others_go_by() -> None:
    book = LaneBook({"main": 4, "cron": 4})
    book.enqueue(ticket("g1", "g1", is_gated=True))
    book.enqueue(ticket("g2", "g2", is_gated=True))
    book.enqueue(ticket("g3", "g3", lane="cron", is_gated=True))
    book.enqueue(ticket("free", "free"))
    assert set(started(book)) == {"g1", "free"}
    book.leave_gate("free")
    assert started(book) == []
    book.leave_gate("g1")
    book.leave_gate("g1")
    assert started(book) == ["g2"]
    book.release("g2")
    assert started(book) == ["g3"]
    for run_id in ("g1", "g3", "free"):
        book.release(run_id)
    assert book.is_empty


def test_an_interrupted_run_is_first_in_its_session() -> None:
    book = LaneBook({"main": 1})
    book.enqueue(ticket("queued"))
    book.enqueue(ticket("interrupted", is_gated=True), is_first=True)
    assert started_one_by_one(book) == ["interrupted", "queued"]
    assert book.is_empty


def test_a_cancelled_gated_run_gives_way_to_the_next_of_its_session() -> None:
    book = LaneBook({"main": 4})
    book.enqueue(ticket("holder", "h", is_gated=True))
    book.enqueue(ticket("gated", "s", is_gated=True))
    book.enqueue(ticket("next", "s"))
    assert started(book) == ["holder"]
    assert book.cancel("gated")
    assert started(book) == ["next"]
    book.release("holder")
    book.release("next")
    assert book.is_empty


def test_a_freed_slot_makes_room_but_keeps_the_session() -> None:
    book = LaneBook({"main": 1})
    book.enqueue(ticket("stuck", "s"))
    book.enqueue(ticket("behind", "s"))
    book.enqueue(ticket("other", "o"))
    assert started(book) == ["stuck"]
    book.free_slot("stuck")
    book.free_slot("stuck")
    assert started(book) == ["other"]
    book.release("other")
    assert started(book) == []
    book.release("stuck")
    assert started(book) == ["behind"]
    book.release("behind")
    assert book.is_empty


def test_cancel_takes_out_what_waits_and_nothing_else() -> None:
    book = LaneBook({"main": 1})
    for run_id in ("a", "b", "c"):
        book.enqueue(ticket(run_id))
    assert started(book) == ["a"]
    assert (book.cancel("a"), book.cancel("nobody"), book.cancel("b")) == (False, False, True)
    book.release("a")
    assert started_one_by_one(book) == ["c"]
    assert book.is_empty


def test_misuse_is_refused_and_changes_nothing() -> None:
    book = LaneBook({"main": 1})
    book.enqueue(ticket("r"))
    with pytest.raises(ValueError, match="already in the book"):
        book.enqueue(ticket("r"))
    with pytest.raises(ValueError, match="not active"):
        book.release("r")
    with pytest.raises(KeyError):
        book.release("nobody")
    assert started_one_by_one(book) == ["r"]
    assert book.is_empty


# --- cost ---


def many_sessions(count: int) -> list[Ticket]:
    return [ticket(f"r{number}", f"s{number}") for number in range(count)]


def many_tenants(count: int) -> list[Ticket]:
    return [ticket(f"r{number}", "s", f"t{number}") for number in range(count)]


def one_session(count: int) -> list[Ticket]:
    return [ticket(f"r{number}") for number in range(count)]


def through(tickets: list[Ticket]) -> None:
    book = LaneBook({"main": 4})
    for each in tickets:
        book.enqueue(each)
    assert len(started_one_by_one(book)) == len(tickets)
    assert book.is_empty


def cancelled_from_behind(tickets: list[Ticket]) -> None:
    book = LaneBook({"main": 4})
    for each in tickets:
        book.enqueue(each)
    for each in reversed(tickets):
        assert book.cancel(each.run_id)
    assert book.is_empty


def _processor_s(work: Callable[[list[Ticket]], None], tickets: list[Ticket]) -> float:
    """Processor time of this thread, which others on the machine hardly change; without collecting what earlier tests
    have left."""
    gc.collect()
    gc.disable()
    try:
        begun_s = time.thread_time()
        work(tickets)
        return time.thread_time() - begun_s
    finally:
        gc.enable()


@pytest.mark.parametrize("work", [through, cancelled_from_behind])
@pytest.mark.parametrize("shape", [many_sessions, many_tenants, one_session])
def test_cost_grows_with_the_number_of_runs_not_with_its_square(
    shape: Callable[[int], list[Ticket]], work: Callable[[list[Ticket]], None]
) -> None:
    few, many = shape(2_500), shape(10_000)
    ratios = []
    for _ in range(3):
        few_s = _processor_s(work, few)
        ratios.append(_processor_s(work, many) / few_s)
    assert min(ratios) < 9  # linear: 4, squared: 16


def test_messages_that_come_and_are_cancelled_leave_no_memory_behind() -> None:
    book = LaneBook({"main": 1})
    book.enqueue(ticket("holder", "holder"))
    book.admit()
    tracemalloc.start()
    try:
        for number in range(8_000):
            book.enqueue(ticket(f"r{number}", f"s{number}", priority=Priority.BACKGROUND))
            assert book.cancel(f"r{number}")
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 100_000
    book.release("holder")
    assert book.is_empty


def test_sessions_that_have_run_leave_bounded_memory_behind() -> None:
    book = LaneBook({"main": 1})
    tracemalloc.start()
    try:
        for number in range(8_000):
            book.enqueue(ticket(f"r{number}", f"s{number}"))
            book.release(started(book)[0])
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert book.is_empty
    assert kept_bytes < 1_500_000
