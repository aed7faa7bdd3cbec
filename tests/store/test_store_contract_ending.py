"""The contract of `Store`: aborts, resets, deletions, imports and retention. Run against every implementation."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.store_codec import decode
from tests.fakes.store_commands import (
    KEEP_ALL,
    NOW,
    SESSION,
    TENANT,
    a_key,
    a_request,
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

from lanewayd.errors import ErrorCode, LanewayError, RunNotStartable
from lanewayd.records import EntryKind, NewEntry, Run, RunState, ToolCallRow, ToolCallState
from lanewayd.store.interface import (
    DeleteSession,
    EventPage,
    ImportSession,
    Pruned,
    RequestAbort,
    ResetSession,
    RunChange,
    RunFilter,
    StartRun,
    Store,
)


async def the_run(store: Store, run_id: str) -> Run:
    run = await store.run(TENANT, run_id)
    assert run is not None
    return run


async def log_of(store: Store, run_id: str) -> EventPage:
    page = await store.run_events(TENANT, run_id, after_seq=0, limit=1000)
    assert page is not None
    return page


def an_abort(**changes: str | bool) -> RequestAbort:
    command = RequestAbort(tenant=TENANT, now=NOW, stop_reason="rpc", reason="enough")
    return replace(command, **changes)  # type: ignore[arg-type]


# --- aborts ---


async def test_aborting_a_queued_run_ends_it_at_once(store: Store) -> None:
    await running(store, "r1")
    await store.accept(accept_run("r2"))
    receipt = await store.request_abort(an_abort(run_id="r2"))
    run = await the_run(store, "r2")
    assert (receipt.cancelled, receipt.running) == ((run,), ())
    assert (run.state, run.ended_at, run.stop_reason) == (RunState.CANCELLED, NOW, "rpc")
    assert (run.abort_requested_at, run.abort_reason) == (NOW, "enough")
    page = await log_of(store, "r2")
    assert page.events[1:] == receipt.events
    queue, end = (decode(event.encoded) for event in receipt.events)
    assert queue["queue"]["phase"] == "cancelled"
    assert (end["lifecycle"]["phase"], end["lifecycle"]["state"], end["lifecycle"]["cancelled"]) == (
        "end",
        "cancelled",
        True,
    )
    assert [event.is_last for event in page.events] == [False, False, True]
    with pytest.raises(RunNotStartable):
        await store.start(start_run("r2"))


async def test_aborting_a_running_run_marks_it_and_the_first_mark_stays(store: Store) -> None:
    await running(store, "r1")
    receipt = await store.request_abort(an_abort(run_id="r1"))
    assert (receipt.cancelled, receipt.running, receipt.events) == ((), ("r1",), ())
    again = await store.request_abort(an_abort(run_id="r1", stop_reason="reset", reason="other"))
    assert again.running == ("r1",)
    run = await the_run(store, "r1")
    assert (run.state, run.abort_requested_at) == (RunState.RUNNING, NOW)
    assert (run.abort_stop_reason, run.abort_reason) == ("rpc", "enough")
    with pytest.raises(RunNotStartable):
        await store.start(StartRun("r1", NOW, recovered=True))
    await store.append(append_to("r1", 2, ends(RunState.CANCELLED, stop_reason="rpc")))
    assert (await the_run(store, "r1")).abort_reason == "enough"


async def test_aborting_an_ended_run_is_an_empty_receipt(store: Store) -> None:
    await ended(store, "r1")
    receipt = await store.request_abort(an_abort(run_id="r1"))
    assert (receipt.cancelled, receipt.running, receipt.events) == ((), (), ())
    assert (await the_run(store, "r1")).abort_requested_at is None


async def test_aborting_an_unknown_or_foreign_run_is_refused(store: Store) -> None:
    await running(store, "r1")
    for command in (an_abort(run_id="unknown"), an_abort(run_id="r1", tenant="other")):
        with pytest.raises(LanewayError) as caught:
            await store.request_abort(command)
        assert caught.value.code is ErrorCode.RUN_NOT_FOUND
    assert (await the_run(store, "r1")).abort_requested_at is None


async def test_aborting_a_session_spares_its_queue_unless_asked(store: Store) -> None:
    await running(store, "r1")
    for run_id in ("r2", "r3"):
        await store.accept(accept_run(run_id))
    receipt = await store.request_abort(an_abort(session_key=SESSION))
    assert (receipt.cancelled, receipt.running) == ((), ("r1",))
    receipt = await store.request_abort(an_abort(session_key=SESSION, clear_queued=True))
    assert [run.run_id for run in receipt.cancelled] == ["r2", "r3"]
    assert receipt.running == ("r1",)
    empty = await store.request_abort(an_abort(session_key="unknown", clear_queued=True))
    assert (empty.cancelled, empty.running) == ((), ())


async def test_an_abort_names_one_thing(store: Store) -> None:
    for command in (an_abort(), an_abort(run_id="r1", session_key=SESSION)):
        with pytest.raises(ValueError, match="a run or a session"):
            await store.request_abort(command)


# --- reset and delete ---


@pytest.mark.parametrize("state", ["running", "queued"])
async def test_a_busy_session_is_neither_reset_nor_deleted(store: Store, state: str) -> None:
    if state == "running":
        await running(store, "r1")
    await store.accept(accept_run("r1" if state == "queued" else "r2"))
    reset = ResetSession(TENANT, SESSION, NewEntry("x", NOW, EntryKind.RESET, "{}"))
    for call in (store.reset_session(reset), store.delete_session(DeleteSession(TENANT, SESSION))):
        with pytest.raises(LanewayError) as caught:
            await call
        assert caught.value.code is ErrorCode.SESSION_ACTIVE
        assert caught.value.metadata == {"run_id": "r1"}
    assert await store.entries(TENANT, SESSION, after_no=0, limit=10) == []


async def test_an_unknown_session_is_neither_reset_nor_deleted(store: Store) -> None:
    await ended(store, "r1")
    reset = ResetSession("other", SESSION, NewEntry("x", NOW, EntryKind.RESET, "{}"))
    for call in (store.reset_session(reset), store.delete_session(DeleteSession("other", SESSION))):
        with pytest.raises(LanewayError) as caught:
            await call
        assert caught.value.code is ErrorCode.SESSION_NOT_FOUND
    assert await store.session(TENANT, SESSION) is not None


async def test_a_deleted_session_leaves_runs_without_text_and_their_last_events(store: Store) -> None:
    request = a_request(message="secret", extra_system_prompt="secret", response_schema_json='{"title":"secret"}')
    await store.accept(accept_run("r1", request=request, key=a_key()))
    await store.start(start_run("r1"))
    call = ToolCallRow("r1", "c1", "e1", 0, "read", '{"path":"secret"}', ToolCallState.REQUESTED)
    asked = RunChange(entries=(an_entry("e1", EntryKind.ASSISTANT, '"secret"'),), tool_calls=(call,))
    await store.append(append_to("r1", 2, asked, says("secret"), ends(output_json='"secret"')))
    before = await log_of(store, "r1")
    await running(store, "r2")
    await store.append(append_to("r2", 2, says("secret"), fails("secret"), claim=1))

    await store.delete_session(DeleteSession(TENANT, SESSION))

    assert await store.session(TENANT, SESSION) is None
    assert await store.entries(TENANT, SESSION, after_no=0, limit=10) == []
    assert await store.context(f"id of {SESSION}") == []
    assert await store.tool_calls("r1") == []
    run = await the_run(store, "r1")
    assert (run.state, run.request.message, run.payloads, run.stop_reason) == (RunState.SUCCEEDED, "", (), "stop")
    assert (run.request.response_schema_json, run.output_json) == ("", "")
    after = await log_of(store, "r1")
    assert (after.events, after.earliest, after.latest) == (before.events[-1:], 3, 3)
    assert run.event_bytes == len(before.events[-1].encoded)
    failed = await the_run(store, "r2")
    assert failed.error is not None
    assert (failed.error.reason, failed.error.message) == ("PROVIDER_UNREACHABLE", "")
    (last,) = (await log_of(store, "r2")).events
    event = decode(last.encoded)
    assert (event["seq"], event["lifecycle"]["phase"], event["lifecycle"]["error"]["message"]) == (3, "error", "")
    assert event["cursor"] == f"{store.store_id}/{last.position}"
    assert failed.event_bytes == len(last.encoded)
    everything = [run.encoded for run in (await store.all_events(TENANT, after=0, limit=100)).events]
    assert not any(b"secret" in encoded for encoded in everything)
    assert (await store.accept(accept_run("r3", key=a_key()))).run_id == "r1"


async def test_readers_of_a_deleted_session_can_tell_that_they_missed_something(store: Store) -> None:
    await ended(store, "r1", texts=3)
    await store.delete_session(DeleteSession(TENANT, SESSION))
    page = await store.session_events(TENANT, SESSION, after=0, limit=10)
    last = await store.last_position()
    assert [event.position for event in page.events] == [last]
    assert (page.earliest, (await store.all_events(TENANT, after=0, limit=10)).earliest) == (last, last)
    assert (await store.all_events("other", after=0, limit=10)).earliest == 1


async def test_the_key_of_a_deleted_session_begins_anew(store: Store) -> None:
    await ended(store, "r1", texts=3)
    missed = await store.last_position()
    await store.delete_session(DeleteSession(TENANT, SESSION))
    await store.accept(accept_run("r2", session=replace(accept_run("r2").session, new_session_id="fresh")))
    session = await store.session(TENANT, SESSION)
    assert session is not None
    assert (session.session_id, session.usage.input_tokens, session.last_run_id) == ("fresh", 0, "r2")
    assert (await store.session_events(TENANT, SESSION, after=missed, limit=10)).earliest == missed
    await store.request_abort(an_abort(run_id="r2"))
    await store.delete_session(DeleteSession(TENANT, SESSION))
    assert len(await store.runs(TENANT, RunFilter(session_key=SESSION), before_no=None, limit=9)) == 2


# --- retention ---


async def prune_all(store: Store, **rules: object) -> list[Pruned]:
    steps = [await store.prune(replace(KEEP_ALL, **rules))]  # type: ignore[arg-type]
    while not steps[-1].is_done:
        steps.append(await store.prune(replace(KEEP_ALL, **rules)))  # type: ignore[arg-type]
        assert len(steps) < 100
    return steps


async def test_nothing_young_and_little_is_pruned(store: Store) -> None:
    await ended(store, "r1", texts=3)
    await store.accept(accept_run("r2", key=a_key()))
    assert await store.prune(KEEP_ALL) == Pruned(0, 0, 0, is_done=True)


async def test_events_go_by_the_age_of_their_run_in_bounded_steps(store: Store) -> None:
    await ended(store, "old", "s1", at=NOW, texts=8)
    await ended(store, "young", "s2", at=NOW + timedelta(days=5), texts=8)
    await running(store, "unended", "s3")
    steps = await prune_all(store, now=NOW + timedelta(days=8), max_rows=4)
    assert [step.events for step in steps] == [4, 4, 2]
    assert steps[0].run_ids == ("old",)
    page = await log_of(store, "old")
    assert (page.events, page.earliest, page.latest) == ((), 11, 10)
    run = await the_run(store, "old")
    assert (run.event_bytes, run.pruned_position, run.state) == (0, 10, RunState.SUCCEEDED)
    assert len((await log_of(store, "young")).events) == 10
    assert len((await log_of(store, "unended")).events) == 1
    assert (await store.session_events(TENANT, "s1", after=0, limit=99)).earliest == 11
    assert (await store.session_events(TENANT, "s2", after=0, limit=99)).earliest == 1
    assert (await store.all_events(TENANT, after=0, limit=99)).earliest == 11
    assert await store.session_start_position(TENANT, "s1") == 10


async def test_a_long_log_keeps_its_newest_events_and_its_end(store: Store) -> None:
    await ended(store, "over", "s1", texts=8)
    await running(store, "goes on", "s2")
    await store.append(append_to("goes on", 2, says(*"abcdefgh")))
    await prune_all(store, max_events_per_run=3, max_rows=4)
    assert [event.seq for event in (await log_of(store, "over")).events] == [8, 9, 10]
    page = await log_of(store, "goes on")
    assert ([event.seq for event in page.events], page.earliest, page.latest) == ([7, 8, 9], 7, 9)
    appended = await store.append(append_to("goes on", 10, says("more")))
    assert [event.seq for event in appended.events] == [10]
    assert (await the_run(store, "goes on")).event_bytes == sum(
        len(event.encoded) for event in (await log_of(store, "goes on")).events
    )
    await prune_all(store, max_events_per_run=0)
    assert [event.is_last for event in (await log_of(store, "over")).events] == [True]


async def test_too_many_bytes_cost_the_oldest_ended_runs_their_events(store: Store) -> None:
    await running(store, "unended", "s0")
    await store.append(append_to("unended", 2, says(*"abcdefgh")))
    for number in range(4):
        await ended(store, f"r{number}", at=NOW + timedelta(minutes=number), texts=8)
    one, unended = (await the_run(store, "r3")).event_bytes, (await the_run(store, "unended")).event_bytes
    await prune_all(store, events_max_bytes=unended + 2 * one + one // 2)
    kept = [bool((await log_of(store, f"r{number}")).events) for number in range(4)]
    assert kept == [False, False, True, True]
    await prune_all(store, events_max_bytes=0)
    assert len((await log_of(store, "unended")).events) == 9
    assert (await log_of(store, "r3")).events == ()


async def test_old_runs_go_with_all_that_hangs_on_them(store: Store) -> None:
    await ended(store, "old", texts=4)
    await ended(store, "young", at=NOW + timedelta(days=3))
    await running(store, "unended", "s2")
    steps = await prune_all(store, now=NOW + timedelta(days=4), runs_max_age=timedelta(days=3), max_rows=4)
    assert sum(step.runs for step in steps) == 1
    assert await store.run(TENANT, "old") is None
    assert await store.run_events(TENANT, "old", after_seq=0, limit=9) is None
    assert {run.run_id for run in await store.runs(TENANT, RunFilter(), before_no=None, limit=9)} == {
        "young",
        "unended",
    }
    # The session remembers what its readers have missed.
    assert (await store.session_events(TENANT, SESSION, after=0, limit=9)).earliest == 7


async def test_a_run_outlives_the_keys_that_may_name_it(store: Store) -> None:
    await ended(store, "r1")
    await prune_all(store, now=NOW + timedelta(hours=23), runs_max_age=timedelta(0))
    assert await store.run(TENANT, "r1") is not None
    await prune_all(store, now=NOW + timedelta(hours=24), runs_max_age=timedelta(0))
    assert await store.run(TENANT, "r1") is None


async def test_expired_keys_go(store: Store) -> None:
    for number in range(5):
        kept_for = timedelta(hours=number + 1)
        await store.accept(accept_run(f"r{number}", f"s{number}", key=a_key(f"k{number}", kept_for=kept_for)))
    steps = await prune_all(store, now=NOW + timedelta(hours=3), max_rows=2)
    assert [step.keys for step in steps] == [2, 1]
    again = await store.accept(accept_run("r9", "s9", key=a_key("k3"), now=NOW + timedelta(hours=3)))
    assert again.duplicate


# --- imports ---


def an_import(*entries: NewEntry, **changes: object) -> ImportSession:
    command = ImportSession(
        tenant=TENANT,
        session_key=SESSION,
        session_id="new",
        agent_id="main",
        created_at=NOW - timedelta(days=1),
        now=NOW,
        entries=entries,
    )
    return replace(command, **changes)  # type: ignore[arg-type]


async def test_an_import_makes_a_session_that_the_next_run_goes_on_from(store: Store) -> None:
    entries = (an_entry("e1"), an_entry("e2", EntryKind.ASSISTANT), an_entry("e3", EntryKind.RESET), an_entry("e4"))
    session = await store.import_session(an_import(*entries))
    assert session == await store.session(TENANT, SESSION)
    assert (session.session_id, session.leaf_entry_id, session.agent_id) == ("new", "e4", "main")
    assert (session.created_at, session.last_interaction_at) == (NOW - timedelta(days=1), NOW)
    assert [entry.entry_id for entry in await store.context("new")] == ["e3", "e4"]
    stored = [entry for _, entry in await store.entries(TENANT, SESSION, after_no=0, limit=10)]
    assert [entry.parent_entry_id for entry in stored] == ["", "e1", "e2", "e3"]
    accepted = await store.accept(accept_run("r1"))
    assert accepted.session_id == "new"
    started = await store.start(start_run("r1", entries=(an_entry("e5"),)))
    assert started.leaf_entry_id == "e4"


async def test_an_import_under_a_key_that_is_taken_changes_nothing(store: Store) -> None:
    await ended(store, "r1")
    before = await store.session(TENANT, SESSION)
    with pytest.raises(LanewayError) as raised:
        await store.import_session(an_import(an_entry("e9")))
    assert (raised.value.code, raised.value.metadata) == (ErrorCode.FIELD_INVALID, {"field": "session_key"})
    assert await store.session(TENANT, SESSION) == before
    assert await store.entries(TENANT, SESSION, after_no=0, limit=10) == []


async def test_an_import_that_fails_in_its_middle_leaves_no_session(store: Store) -> None:
    await store.import_session(an_import(an_entry("e1")))
    with pytest.raises(ValueError, match="UNIQUE"):
        await store.import_session(
            an_import(an_entry("e2"), an_entry("e1"), session_key="agent:main:t", session_id="t")
        )
    assert await store.session(TENANT, "agent:main:t") is None
    assert await store.context("t") == []


async def test_an_import_of_another_tenant_under_the_same_key_is_its_own(store: Store) -> None:
    await store.import_session(an_import(an_entry("e1")))
    other = await store.import_session(an_import(an_entry("e2"), tenant="other", session_id="o"))
    assert (other.tenant, other.leaf_entry_id) == ("other", "e2")
    mine = await store.session(TENANT, SESSION)
    assert mine is not None
    assert mine.leaf_entry_id == "e1"
