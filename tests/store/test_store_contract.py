"""The contract of `Store`: starting, running and ending runs. Run against every implementation."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.store_codec import decode
from tests.fakes.store_commands import (
    NOW,
    SESSION,
    TENANT,
    accept_run,
    an_entry,
    append_to,
    ended,
    ends,
    fails,
    running,
    says,
    start_run,
)
from tests.store.conftest import OpenStore

from lanewayd.errors import ClaimLost, RunNotStartable
from lanewayd.events import EventKind, Lifecycle, LifecyclePhase, NewEvent
from lanewayd.messages import Payload, RunError, ToolOutcome, Usage
from lanewayd.records import EntryKind, Run, RunState, ToolCallRow, ToolCallState
from lanewayd.store.interface import RunChange, SettleRun, StartRun, Store


async def stored_run(store: Store, run_id: str) -> Run:
    run = await store.run(TENANT, run_id)
    assert run is not None
    return run


async def test_the_first_start_gives_claim_attempt_and_time(store: Store) -> None:
    await store.accept(accept_run("r1"))
    started = await store.start(start_run("r1", entries=(an_entry("e1"),)))
    run = started.run
    assert (run.state, run.claim, run.attempt, run.charges, run.started_at) == (RunState.RUNNING, 1, 1, 0, NOW)
    assert run == await store.run(TENANT, "r1")
    lifecycle = decode(started.events[0].encoded)["lifecycle"]
    assert (lifecycle["phase"], lifecycle["attempt"]) == ("start", 1)
    assert [entry.entry_id for entry in await store.context(run.session_id)] == ["e1"]


async def test_a_recovered_start_is_charged_and_keeps_the_first_start(store: Store) -> None:
    await running(store, "r1")
    recovered = NewEvent(NOW, Lifecycle(LifecyclePhase.RECOVERED, "running", void_message_id="m1"))
    later = NOW + timedelta(hours=1)
    started = await store.start(StartRun("r1", later, recovered=True, events=(recovered,)))
    run = started.run
    assert (run.claim, run.attempt, run.charges, run.started_at) == (2, 2, 1, NOW)
    lifecycle = decode(started.events[0].encoded)["lifecycle"]
    assert (lifecycle["attempt"], lifecycle["void_message_id"], started.events[0].seq) == (2, "m1", 2)


async def test_a_handed_over_run_is_not_charged_once(store: Store) -> None:
    await running(store, "r1")
    await store.append(append_to("r1", 2, RunChange(handed_over=True, used_s=1.25)))
    first = await store.start(StartRun("r1", NOW, recovered=True))
    assert (first.run.charges, first.run.handed_over, first.run.used_s) == (0, False, 1.25)
    second = await store.start(StartRun("r1", NOW, recovered=True))
    assert (second.run.charges, second.run.attempt) == (1, 3)


async def test_a_run_that_got_on_carries_no_charge(store: Store) -> None:
    await running(store, "r1")
    await store.start(StartRun("r1", NOW, recovered=True))
    await store.append(append_to("r1", 2, RunChange(got_on=True), claim=2))
    assert (await stored_run(store, "r1")).charges == 0


async def test_what_cannot_be_started_is_refused(store: Store) -> None:
    await store.accept(accept_run("queued", "s1"))
    await running(store, "running", "s2")
    await ended(store, "over", "s3")
    for run_id, recovered in [
        ("unknown", False),
        ("queued", True),
        ("running", False),
        ("over", False),
        ("over", True),
    ]:
        with pytest.raises(RunNotStartable):
            await store.start(StartRun(run_id, NOW, recovered=recovered))


async def test_an_append_needs_the_claim_the_state_and_the_next_number(store: Store) -> None:
    await running(store, "r1")
    await store.accept(accept_run("queued", "s2"))
    for command in (
        append_to("r1", 2, says("x"), claim=2),
        append_to("r1", 1, says("x")),
        append_to("r1", 3, says("x")),
        append_to("queued", 1, says("x"), claim=0),
        append_to("unknown", 1, says("x")),
    ):
        with pytest.raises(ClaimLost):
            await store.append(command)
    assert (await stored_run(store, "r1")).last_seq == 1
    await store.append(append_to("r1", 2, ends()))
    with pytest.raises(ClaimLost):
        await store.append(append_to("r1", 3, says("late")))


async def test_changes_are_stored_in_order_with_gapless_numbers(store: Store) -> None:
    await running(store, "r1")
    first = await store.append(append_to("r1", 2, says("a", "b"), says("c")))
    second = await store.append(append_to("r1", 5, says("d"), ends()))
    page = await store.run_events(TENANT, "r1", after_seq=0, limit=100)
    assert page is not None
    assert [event.seq for event in page.events] == [1, 2, 3, 4, 5, 6]
    assert page.events[1:] == first.events + second.events
    assert [event.is_last for event in page.events] == [False] * 5 + [True]
    assert [event.kind for event in page.events[3:]] == [EventKind.ASSISTANT, EventKind.ASSISTANT, EventKind.LIFECYCLE]
    assert [decode(event.encoded)["cursor"] for event in page.events] == [
        f"{store.store_id}/{event.position}" for event in page.events
    ]
    run = await stored_run(store, "r1")
    assert (run.last_seq, run.event_bytes) == (6, sum(len(event.encoded) for event in page.events))


async def test_progress_is_kept_until_it_changes(store: Store) -> None:
    await running(store, "r1")
    await store.append(append_to("r1", 2, RunChange(used_s=2.5, open_message_id="m1")))
    await store.append(append_to("r1", 2, says("x")))
    run = await stored_run(store, "r1")
    assert (run.used_s, run.open_message_id) == (2.5, "m1")
    await store.append(append_to("r1", 3, RunChange(open_message_id="")))
    run = await stored_run(store, "r1")
    assert (run.used_s, run.open_message_id) == (2.5, "")


async def test_the_end_writes_the_result_and_the_sums_of_the_session(store: Store) -> None:
    for run_id in ("r1", "r2"):
        await running(store, run_id)
        payloads = (Payload("cut", truncated=True, total_bytes=99),)
        usage = Usage(10, 5, 3, 2, 1, unavailable=run_id == "r2", cost_usd=0.25)
        end = ends(payloads=payloads, usage=usage, truncated=True, stop_reason="length", context_tokens=77)
        appended = await store.append(append_to(run_id, 2, end))
        run = await stored_run(store, run_id)
        assert appended.run == run
        assert (run.state, run.ended_at, run.stop_reason, run.truncated) == (RunState.SUCCEEDED, NOW, "length", True)
        assert (run.payloads, run.usage) == (payloads, usage)
    session = await store.session(TENANT, SESSION)
    assert session is not None
    assert session.usage == Usage(20, 10, 6, 4, 2, unavailable=True, cost_usd=0.5)
    assert (session.context_tokens, session.last_run_id, session.last_state) == (77, "r2", RunState.SUCCEEDED)


@pytest.mark.parametrize(
    "uses",
    [
        [Usage(1, cost_usd=0.5), Usage(2)],
        [Usage(1), Usage(2, cost_usd=0.5), Usage(3, cost_usd=0.0)],
        [Usage(1), Usage(2)],
        [Usage(), Usage(2, cost_usd=0.5)],
        [Usage(1, cost_usd=0.5, is_cost_partial=True), Usage(2, cost_usd=0.5)],
    ],
    ids=["one unknown price", "unknown first", "none known", "nothing used", "a run of both"],
)
async def test_the_cost_of_a_session_adds_up_as_usage_does(store: Store, uses: list[Usage]) -> None:
    for number, usage in enumerate(uses):
        await running(store, f"r{number}")
        await store.append(append_to(f"r{number}", 2, ends(usage=usage)))
    session = await store.session(TENANT, SESSION)
    assert session is not None
    assert session.usage == sum(uses, Usage())


async def test_a_start_says_what_the_sessions_runs_have_used(store: Store) -> None:
    await running(store, "r1")
    await store.append(append_to("r1", 2, ends(usage=Usage(10, 5, cost_usd=0.5))))
    await store.accept(accept_run("r2"))
    first = await store.start(start_run("r2"))
    again = await store.start(StartRun("r2", NOW, recovered=True))
    assert first.session_usage == again.session_usage == Usage(10, 5, cost_usd=0.5)


async def test_what_calls_without_an_entry_used_is_kept(store: Store) -> None:
    await running(store, "r1")
    assert (await stored_run(store, "r1")).void_usage == Usage()
    await store.append(append_to("r1", 2, RunChange(void_usage=Usage(3)), RunChange(void_usage=Usage(5, cost_usd=1.5))))
    await store.append(append_to("r1", 2, RunChange(used_s=1.0)))
    run = await stored_run(store, "r1")
    assert (run.void_usage, run.usage) == (Usage(5, cost_usd=1.5), None)


async def test_who_answered_is_kept_of_the_run_and_what_watchers_were_told_of_the_session(store: Store) -> None:
    await running(store, "r1")
    assert (await stored_run(store, "r1")).answered_by == ""
    await store.append(append_to("r1", 2, RunChange(fallback_model="b/m", answered_by="b/m"), RunChange(used_s=1.0)))
    assert (await stored_run(store, "r1")).answered_by == "b/m"
    assert (await store.start(StartRun("r1", NOW, recovered=True))).fallback_model == "b/m"
    await store.append(replace(append_to("r1", 2, ends()), claim=2))
    await store.accept(accept_run("r2"))
    again = await store.start(start_run("r2"))
    assert (again.fallback_model, again.run.answered_by) == ("b/m", "")
    await store.append(append_to("r2", again.run.last_seq + 1, RunChange(fallback_model="")))
    assert (await store.start(StartRun("r2", NOW, recovered=True))).fallback_model == ""


async def test_a_failed_run_keeps_its_error(store: Store) -> None:
    await running(store, "r1")
    await store.append(append_to("r1", 2, fails("refused")))
    run = await stored_run(store, "r1")
    expected = RunError("PROVIDER_UNREACHABLE", "refused", provider="acme", model="m", retryable=True)
    assert (run.state, run.error) == (RunState.FAILED, expected)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param((ends(), says("x")), id="something after the end"),
        pytest.param((RunChange(events=ends().events),), id="a terminal event without end"),
        pytest.param((RunChange(end=ends().end),), id="an end without terminal event"),
        pytest.param((RunChange(events=ends().events + says("x").events, end=ends().end),), id="an event after it"),
    ],
)
async def test_a_run_ends_once_together_with_its_last_event(store: Store, changes: tuple[RunChange, ...]) -> None:
    await running(store, "r1")
    with pytest.raises(ValueError, match="end"):
        await store.append(append_to("r1", 2, *changes))
    run = await stored_run(store, "r1")
    assert (run.state, run.last_seq) == (RunState.RUNNING, 1)


async def test_settling_shuts_out_the_holder_of_the_claim(store: Store) -> None:
    await running(store, "r1")
    settled = await store.settle(SettleRun("r1", fails()))
    assert settled.run is not None
    assert (settled.run.state, settled.run.claim, settled.events[0].seq) == (RunState.FAILED, 2, 2)
    with pytest.raises(ClaimLost):
        await store.append(append_to("r1", 3, says("late")))
    for run_id in ("r1", "unknown"):
        with pytest.raises(RunNotStartable):
            await store.settle(SettleRun(run_id, fails()))


async def test_settling_without_an_end_is_a_bug(store: Store) -> None:
    await running(store, "r1")
    with pytest.raises(ValueError, match="ends it"):
        await store.settle(SettleRun("r1", says("x")))


async def test_tool_calls_go_through_their_states_in_request_order(store: Store) -> None:
    await running(store, "r1")

    def call(entry_id: str, index: int, state: ToolCallState = ToolCallState.REQUESTED) -> ToolCallRow:
        return ToolCallRow("r1", f"c{index}", entry_id, index, "read", '{"n":1}', state)

    for entry_id in ("z1", "a2"):  # the second answer of the model uses the same call ids
        asked = RunChange(
            entries=(an_entry(entry_id, EntryKind.ASSISTANT),), tool_calls=(call(entry_id, 1), call(entry_id, 0))
        )
        await store.append(append_to("r1", 2, asked))
    launched = call("a2", 0, ToolCallState.LAUNCHED)
    finished = replace(
        call("z1", 1, ToolCallState.FINISHED), result_text="no", is_error=True, outcome=ToolOutcome.BLOCKED
    )
    await store.append(append_to("r1", 2, RunChange(tool_calls=(launched, finished))))
    assert await store.tool_calls("r1") == [call("z1", 0), finished, launched, call("a2", 1)]
    with pytest.raises(ValueError, match="no call c9"):
        await store.append(append_to("r1", 2, RunChange(tool_calls=(call("z1", 9, ToolCallState.LAUNCHED),))))


async def test_everything_stored_is_there_after_opening_again(open_store: OpenStore) -> None:
    store = await open_store()
    await running(store, "r1")
    await store.append(append_to("r1", 2, says("x")))
    before = await store.run_events(TENANT, "r1", after_seq=0, limit=10)
    store_id, position = store.store_id, await store.last_position()
    await store.close()
    store = await open_store()
    assert store.store_id == store_id
    assert await store.run_events(TENANT, "r1", after_seq=0, limit=10) == before
    appended = await store.append(append_to("r1", 3, says("y")))
    assert appended.events[0].position == position + 1
    assert [run.run_id for run in await store.unended_runs()] == ["r1"]
