"""The contract of `Store`: what is read, page by page. Run against every implementation."""

from datetime import timedelta

import pytest
from tests.fakes.store_commands import (
    NOW,
    SESSION,
    TENANT,
    a_request,
    a_selector,
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

from lanewayd.records import EntryKind, NewEntry, RunState, SessionFilter
from lanewayd.store.interface import EventPage, ResetSession, RunChange, RunFilter, StartRun, Store


def numbers(page: EventPage | None) -> list[tuple[str, int]]:
    assert page is not None
    return [(event.run_id, event.seq) for event in page.events]


async def test_rows_of_another_tenant_do_not_exist(store: Store) -> None:
    await ended(store, "r1")
    assert await store.run("other", "r1") is None
    assert await store.runs("other", RunFilter(), before_no=None, limit=10) == []
    assert await store.runs("other", RunFilter(session_key=SESSION), before_no=None, limit=10) == []
    assert await store.session("other", SESSION) is None
    assert await store.sessions("other", SessionFilter(), before=None, limit=10) == []
    assert await store.entries("other", SESSION, after_no=0, limit=10) == []
    assert await store.run_events("other", "r1", after_seq=0, limit=10) is None
    assert (await store.session_events("other", SESSION, after=0, limit=10)).events == ()
    assert (await store.all_events("other", after=0, limit=10)).events == ()
    assert await store.session_start_position("other", SESSION) == 0


async def test_runs_are_listed_newest_first_page_by_page(store: Store) -> None:
    for number in range(7):
        await store.accept(accept_run(f"r{number}", f"s{number % 2}"))
    seen: list[str] = []
    before_no = None
    while page := await store.runs(TENANT, RunFilter(), before_no=before_no, limit=3):
        seen += [run.run_id for run in page]
        before_no = page[-1].accepted_no
    assert seen == ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]


async def test_filters_of_runs_combine(store: Store) -> None:
    await ended(store, "done", "s1")
    await running(store, "runs", "s1")
    await store.accept(accept_run("waits", "s1", request=a_request(label="x")))
    await store.accept(accept_run("other", "s2", request=a_request(label="x")))
    for which, expected in [
        (RunFilter(), ["other", "waits", "runs", "done"]),
        (RunFilter(session_key="s1"), ["waits", "runs", "done"]),
        (RunFilter(states=(RunState.QUEUED, RunState.SUCCEEDED)), ["other", "waits", "done"]),
        (RunFilter(label="x"), ["other", "waits"]),
        (RunFilter(session_key="s1", label="x", states=(RunState.QUEUED,), agent_id="main"), ["waits"]),
        (RunFilter(agent_id="another"), []),
        (RunFilter(session_key="unknown"), []),
    ]:
        assert [run.run_id for run in await store.runs(TENANT, which, before_no=None, limit=10)] == expected


async def test_unended_runs_of_all_tenants_come_oldest_first(store: Store) -> None:
    await running(store, "r1", "s1")
    await ended(store, "r2", "s2")
    foreign = a_selector("s1", new_session_id="another id")
    await store.accept(accept_run("r3", session=foreign, tenant="other"))
    await store.accept(accept_run("r4", "s1"))
    assert [run.run_id for run in await store.unended_runs()] == ["r1", "r3", "r4"]


async def test_a_session_shows_its_runs(store: Store) -> None:
    await ended(store, "r1")
    session = await store.session(TENANT, SESSION)
    assert session is not None
    assert (session.active_run_id, session.queued_runs, session.last_run_id) == ("", 0, "r1")
    await running(store, "r2")
    for run_id in ("r3", "r4"):
        await store.accept(accept_run(run_id))
    session = await store.session(TENANT, SESSION)
    assert session is not None
    assert (session.active_run_id, session.queued_runs) == ("r2", 2)
    assert (session.last_run_id, session.last_state) == ("r4", RunState.QUEUED)


async def test_sessions_are_listed_newest_interaction_first_page_by_page(store: Store) -> None:
    for number, key in enumerate(["a", "b", "c", "d", "e"]):
        await store.accept(accept_run(f"r{number}", key, now=NOW + timedelta(minutes=number // 2)))
    seen: list[str] = []
    before = None
    while page := await store.sessions(TENANT, SessionFilter(), before=before, limit=2):
        seen += [session.session_key for session in page]
        before = (page[-1].last_interaction_at, page[-1].session_key)
    assert seen == ["e", "c", "d", "a", "b"]
    assert (await store.sessions(TENANT, SessionFilter(), before=None, limit=1))[0] == await store.session(TENANT, "e")


async def test_entries_chain_to_the_leaf_over_the_runs_of_a_session(store: Store) -> None:
    await running(store, "r1")
    entries = (an_entry("e1"), an_entry("e2", EntryKind.ASSISTANT, '{"n":2}'))
    await store.append(append_to("r1", 2, RunChange(entries=entries), RunChange(entries=(an_entry("e3"),)), ends()))
    await store.accept(accept_run("r2"))
    await store.start(StartRun("r2", NOW, recovered=False, entries=(an_entry("e4"),)))
    path = await store.context(f"id of {SESSION}")
    assert [(entry.entry_id, entry.parent_entry_id, entry.run_id) for entry in path] == [
        ("e1", "", "r1"),
        ("e2", "e1", "r1"),
        ("e3", "e2", "r1"),
        ("e4", "e3", "r2"),
    ]
    assert (path[1].kind, path[1].body_json, path[1].time) == (EntryKind.ASSISTANT, '{"n":2}', NOW)
    session = await store.session(TENANT, SESSION)
    assert session is not None
    assert session.leaf_entry_id == "e4"


async def test_the_context_begins_with_the_last_reset(store: Store) -> None:
    await running(store, "r1")
    await store.append(append_to("r1", 2, RunChange(entries=(an_entry("e1"),)), ends(context_tokens=9)))
    for entry_id in ("x1", "x2"):
        reset = NewEntry(entry_id, NOW, EntryKind.RESET, "{}")
        assert (await store.reset_session(ResetSession(TENANT, SESSION, reset))).context_tokens == 0
    await store.accept(accept_run("r2"))
    await store.start(StartRun("r2", NOW, recovered=False, entries=(an_entry("e2"),)))
    assert [entry.entry_id for entry in await store.context(f"id of {SESSION}")] == ["x2", "e2"]
    whole = await store.entries(TENANT, SESSION, after_no=0, limit=10)
    assert [entry.entry_id for _, entry in whole] == ["e1", "x1", "x2", "e2"]


async def test_an_unknown_session_has_no_context(store: Store) -> None:
    assert await store.context("unknown") == []


async def test_entries_are_read_page_by_page_and_alone(store: Store) -> None:
    await running(store, "r1", "s1")
    await running(store, "r2", "s2")
    for number in range(5):
        await store.append(append_to("r1", 2, RunChange(entries=(an_entry(f"a{number}"),))))
        await store.append(append_to("r2", 2, RunChange(entries=(an_entry(f"b{number}"),))))
    seen: list[str] = []
    after_no = 0
    while page := await store.entries(TENANT, "s1", after_no=after_no, limit=2):
        seen += [entry.entry_id for _, entry in page]
        after_no = page[-1][0]
    assert seen == ["a0", "a1", "a2", "a3", "a4"]
    entry = await store.entry(TENANT, "s1", "a3")
    assert entry is not None
    assert entry.parent_entry_id == "a2"
    assert await store.entry(TENANT, "s1", "b3") is None
    assert await store.entry("other", "s1", "a3") is None


async def test_run_events_come_in_pages_with_the_bounds_of_the_log(store: Store) -> None:
    await running(store, "r1")
    await store.append(append_to("r1", 2, says(*"abcd")))
    page = await store.run_events(TENANT, "r1", after_seq=2, limit=2)
    assert numbers(page) == [("r1", 3), ("r1", 4)]
    assert page is not None
    assert (page.earliest, page.latest) == (1, 5)
    assert numbers(await store.run_events(TENANT, "r1", after_seq=5, limit=2)) == []
    assert await store.run_events(TENANT, "unknown", after_seq=0, limit=2) is None


async def test_positions_are_the_order_of_commits_over_all_runs(store: Store) -> None:
    await running(store, "r1", "s1")
    await running(store, "r2", "s2")
    await store.append(append_to("r2", 2, says("a")))
    await store.append(append_to("r1", 2, says("b")))
    page = await store.all_events(TENANT, after=0, limit=10)
    assert numbers(page) == [("r1", 1), ("r2", 1), ("r2", 2), ("r1", 2)]
    positions = [event.position for event in page.events]
    assert positions == sorted(positions)
    assert page.latest == positions[-1] == await store.last_position()
    rest = await store.all_events(TENANT, after=positions[1], limit=1)
    assert numbers(rest) == [("r2", 2)]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_session_events_merge_the_logs_of_their_runs(store: Store, limit: int) -> None:
    await running(store, "r1")
    await running(store, "noise", "another")
    await store.append(append_to("r1", 2, says("a", "b")))
    await store.accept(accept_run("r2"))  # its QUEUED event stands inside the log of r1
    await store.accept(accept_run("r3"))
    await store.append(append_to("noise", 2, says("x")))
    await store.append(append_to("r1", 4, says("c"), ends()))
    await store.start(start_run("r2"))
    await store.append(append_to("r2", 3, fails()))
    await store.start(start_run("r3"))
    expected = [
        *[("r1", 1), ("r1", 2), ("r1", 3), ("r2", 1), ("r3", 1), ("r1", 4), ("r1", 5)],
        *[("r2", 2), ("r2", 3), ("r3", 2)],
    ]
    seen: list[tuple[str, int]] = []
    after = 0
    while (page := await store.session_events(TENANT, SESSION, after=after, limit=limit)).events:
        assert (page.earliest, page.latest) == (1, await store.last_position())
        seen += numbers(page)
        after = page.events[-1].position
    assert seen == expected
    for start in range(after + 1):  # a reader may come from anywhere
        page = await store.session_events(TENANT, SESSION, after=start, limit=100)
        assert numbers(page) == expected[len(expected) - len(page.events) :]
        assert all(event.position > start for event in page.events)


async def test_a_session_reader_starts_before_the_oldest_unended_run(store: Store) -> None:
    assert await store.session_start_position(TENANT, SESSION) == 0
    await store.accept(accept_run("r0"))
    assert await store.session_start_position(TENANT, SESSION) == 0
    await store.start(start_run("r0"))
    await store.append(append_to("r0", 2, ends()))
    last = await store.session_start_position(TENANT, SESSION)
    assert numbers(await store.session_events(TENANT, SESSION, after=last, limit=10)) == [("r0", 1), ("r0", 2)]
    await store.accept(accept_run("r1"))
    start = await store.session_start_position(TENANT, SESSION)
    assert start == await store.last_position()
    await store.start(start_run("r1"))
    await store.accept(accept_run("r2"))
    start = await store.session_start_position(TENANT, SESSION)
    assert numbers(await store.session_events(TENANT, SESSION, after=start, limit=10)) == [("r1", 1), ("r2", 1)]


async def test_figures_count_what_is_stored(store: Store) -> None:
    await ended(store, "r1", "s1")
    await running(store, "r2", "s2")
    await store.accept(accept_run("r3", "s2"))
    figures = await store.figures()
    assert figures.runs_by_state == {RunState.SUCCEEDED: 1, RunState.RUNNING: 1, RunState.QUEUED: 1}
    assert figures.sessions == 2
    assert figures.size_bytes > 4096
    assert figures.commit_ms > 0
