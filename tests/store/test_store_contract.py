"""The contract of `Store`: accepting, starting and running. Run against every implementation."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.store_codec import decode
from tests.fakes.store_commands import (
    NOW,
    SESSION,
    TENANT,
    a_key,
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
from tests.store.conftest import OpenStore

from lanewayd.errors import ClaimLost, ErrorCode, FieldError, LanewayError, RunNotStartable
from lanewayd.events import EventKind, Lifecycle, LifecyclePhase, NewEvent
from lanewayd.messages import Payload, RunError, ToolOutcome, Usage
from lanewayd.records import Disposition, EntryKind, Priority, Run, RunState, ToolCallRow, ToolCallState
from lanewayd.store.interface import RunChange, RunFilter, SettleRun, StartRun, Store


async def refused(call: object, code: ErrorCode) -> LanewayError:
    with pytest.raises(LanewayError) as caught:
        await call  # type: ignore[misc]
    assert caught.value.code is code
    return caught.value


async def stored_run(store: Store, run_id: str) -> Run:
    run = await store.run(TENANT, run_id)
    assert run is not None
    return run


# --- accept ---


async def test_an_accepted_run_is_read_back_as_it_was_answered(store: Store) -> None:
    request = a_request(
        lane="cron",
        priority=Priority.BACKGROUND,
        extra_system_prompt="be brief",
        label="nightly",
        tools_allow=("read",),
        tools_deny=("exec", "write"),
        max_turns=3,
        metadata={"ticket": "7"},
        queue_mode="followup",
        channel="mail",
        to="me",
        account_id="acc",
        thread_id="th",
        provenance_json='{"kind":1}',
        traceparent="00-1-2-01",
        timeout_s=0.1,
    )
    accepted = await store.accept(accept_run("r1", request=request))
    assert accepted.run == await store.run(TENANT, "r1")
    assert accepted.run is not None
    assert accepted.run.request == request
    assert (accepted.run.state, accepted.run.accepted_at) == (RunState.QUEUED, NOW)
    assert (accepted.session_key, accepted.session_id, accepted.agent_id) == (SESSION, f"id of {SESSION}", "main")
    assert (accepted.disposition, accepted.queue_position, accepted.duplicate) == ("started", 0, False)


async def test_only_the_queued_runs_ahead_count_in_the_queue_position(store: Store) -> None:
    await running(store, "r1")
    answers = [await store.accept(accept_run(f"r{number}")) for number in (2, 3, 4)]
    assert [(a.disposition, a.queue_position) for a in answers] == [("queued", 0), ("queued", 1), ("queued", 2)]
    event = decode(answers[2].events[0].encoded)
    assert (event["seq"], event["queue"]["phase"], event["queue"]["position"]) == (1, "queued", 2)
    assert answers[2].run is not None
    assert answers[2].run.disposition is Disposition.QUEUED


async def test_acceptance_numbers_order_all_runs(store: Store) -> None:
    accepted = [await store.accept(accept_run(f"r{number}", f"s{number % 3}")) for number in range(6)]
    numbers = [a.run.accepted_no for a in accepted if a.run]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 6


async def test_a_message_without_lane_uses_main_and_a_child_the_lane_of_its_depth(store: Store) -> None:
    await running(store, "top")
    child = await store.accept(accept_run("child", "s2", request=a_request(parent_run_id="top")))
    named = await store.accept(accept_run("named", "s3", request=a_request(parent_run_id="top", lane="cron")))
    grandchild = await store.accept(accept_run("grandchild", "s4", request=a_request(parent_run_id="child")))
    lanes = [(a.run.request.lane, a.run.depth) for a in (child, named, grandchild) if a.run]
    assert lanes == [("nested.1", 1), ("cron", 1), ("nested.2", 2)]
    assert (await stored_run(store, "top")).request.lane == "main"


async def test_an_unknown_foreign_or_ended_parent_is_not_found(store: Store) -> None:
    await ended(store, "over", "s1")
    selector = a_selector("s1", new_session_id="another id")
    await store.accept(accept_run("foreign", session=selector, tenant="other"))
    for parent in ("unknown", "over", "foreign"):
        call = store.accept(accept_run("child", "s2", request=a_request(parent_run_id=parent)))
        assert (await refused(call, ErrorCode.RUN_NOT_FOUND)).metadata["run_id"] == parent
    assert await store.session(TENANT, "s2") is None


async def test_a_child_on_the_session_of_any_ancestor_is_refused(store: Store) -> None:
    await running(store, "top", "s1")
    await store.accept(accept_run("child", "s2", request=a_request(parent_run_id="top")))
    for session in ("s1", "s2"):
        call = store.accept(accept_run("grandchild", session, request=a_request(parent_run_id="child")))
        await refused(call, ErrorCode.NESTED_IN_SESSION)
    assert await store.run(TENANT, "grandchild") is None


async def test_nesting_has_a_limit(store: Store) -> None:
    await running(store, "r0", "s0")
    await store.accept(accept_run("r1", "s1", request=a_request(parent_run_id="r0"), max_depth=1))
    call = store.accept(accept_run("r2", "s2", request=a_request(parent_run_id="r1"), max_depth=1))
    error = await refused(call, ErrorCode.FIELD_INVALID)
    assert isinstance(error, FieldError)
    assert error.field == "parent_run_id"


async def test_a_session_id_alone_finds_its_session_and_agent(store: Store) -> None:
    first = await store.accept(accept_run("r1"))
    by_id = replace(a_selector(""), session_id=first.session_id, agent_id="")
    second = await store.accept(accept_run("r2", session=by_id))
    assert (second.session_key, second.agent_id) == (SESSION, "main")
    assert await store.session_key_of(TENANT, first.session_id) == SESSION
    assert await store.session_key_of("other", first.session_id) is None


async def test_a_session_id_that_the_key_does_not_own_is_not_found(store: Store) -> None:
    first = await store.accept(accept_run("r1", "s1"))
    await store.accept(accept_run("r2", "s2"))
    selectors = [
        a_selector("", session_id="unknown"),
        a_selector("s2", session_id=first.session_id),
        a_selector("s3", session_id=first.session_id),
    ]
    for selector in selectors:
        await refused(store.accept(accept_run("r3", session=selector)), ErrorCode.SESSION_NOT_FOUND)
    foreign = accept_run("r3", session=a_selector("", session_id=first.session_id), tenant="other")
    await refused(store.accept(foreign), ErrorCode.SESSION_NOT_FOUND)
    assert await store.session(TENANT, "s3") is None


async def test_a_session_belongs_to_one_agent(store: Store) -> None:
    await store.accept(accept_run("r1"))
    call = store.accept(accept_run("r2", session=a_selector(agent_id="other")))
    assert (await refused(call, ErrorCode.FIELD_INVALID)).metadata["field"] == "agent_id"


async def test_a_message_moves_the_last_interaction_and_never_back(store: Store) -> None:
    await store.accept(accept_run("r1"))
    await store.accept(accept_run("r2", now=NOW + timedelta(minutes=5)))
    await store.accept(accept_run("r3", now=NOW + timedelta(minutes=1)))
    session = await store.session(TENANT, SESSION)
    assert session is not None
    assert (session.created_at, session.last_interaction_at) == (NOW, NOW + timedelta(minutes=5))


async def test_a_duplicate_gets_the_stored_answer(store: Store) -> None:
    await running(store, "r0")
    first = await store.accept(accept_run("r1", key=a_key()))
    await store.append(append_to("r0", 2, ends()))
    again = await store.accept(accept_run("r2", key=a_key(), has_room=False, now=NOW + timedelta(hours=1)))
    assert again == replace(first, duplicate=True, run=None, events=())
    assert await store.run(TENANT, "r2") is None


async def test_a_key_for_another_request_is_refused(store: Store) -> None:
    await store.accept(accept_run("r1", key=a_key()))
    call = store.accept(accept_run("r2", "s2", key=a_key(request=b"other")))
    await refused(call, ErrorCode.IDEMPOTENCY_KEY_REUSED)
    assert await store.session(TENANT, "s2") is None


async def test_a_hash_of_another_version_counts_as_the_same_request(store: Store) -> None:
    first = await store.accept(accept_run("r1", key=a_key()))
    again = await store.accept(accept_run("r2", key=a_key(request=b"new", hash_version=2)))
    assert (again.run_id, again.duplicate) == (first.run_id, True)


async def test_keys_are_the_tenants_own(store: Store) -> None:
    await store.accept(accept_run("r1", key=a_key()))
    selector = a_selector(new_session_id="another id")
    other = await store.accept(accept_run("r2", key=a_key(request=b"other"), tenant="other", session=selector))
    assert other.run_id == "r2"


async def test_an_expired_key_is_free_again(store: Store) -> None:
    await store.accept(accept_run("r1", key=a_key()))
    later = NOW + timedelta(hours=24)
    second = await store.accept(accept_run("r2", key=a_key(request=b"other"), now=later))
    third = await store.accept(accept_run("r3", key=a_key(request=b"other"), now=later))
    assert (second.run_id, second.duplicate) == ("r2", False)
    assert (third.run_id, third.duplicate) == ("r2", True)


async def test_a_full_queue_answers_duplicates_only(store: Store) -> None:
    await store.accept(accept_run("r1", key=a_key()))
    await refused(store.accept(accept_run("r2", "s2", has_room=False)), ErrorCode.QUEUE_FULL)
    assert (await store.accept(accept_run("r3", key=a_key(), has_room=False))).duplicate
    assert await store.session(TENANT, "s2") is None


async def test_a_run_id_that_exists_is_a_bug_and_leaves_no_trace(store: Store) -> None:
    await store.accept(accept_run("r1"))
    with pytest.raises(ValueError, match="UNIQUE"):
        await store.accept(accept_run("r1", "s2", key=a_key()))
    assert await store.session(TENANT, "s2") is None
    assert not (await store.accept(accept_run("r2", "s2", key=a_key(request=b"other")))).duplicate


async def test_twenty_concurrent_calls_with_one_key_make_one_run(store: Store) -> None:
    calls = (store.accept(accept_run(f"r{number}", key=a_key())) for number in range(20))
    answers = await asyncio.gather(*calls)
    assert len({answer.run_id for answer in answers}) == 1
    assert [answer.duplicate for answer in answers].count(False) == 1
    assert len(await store.runs(TENANT, RunFilter(), before_no=None, limit=50)) == 1


# --- start, append, settle ---


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
        usage = Usage(10, 5, 3, 2, 1, unavailable=run_id == "r2")
        end = ends(payloads=payloads, usage=usage, truncated=True, stop_reason="length", context_tokens=77)
        appended = await store.append(append_to(run_id, 2, end))
        run = await stored_run(store, run_id)
        assert appended.run == run
        assert (run.state, run.ended_at, run.stop_reason, run.truncated) == (RunState.SUCCEEDED, NOW, "length", True)
        assert (run.payloads, run.usage) == (payloads, usage)
    session = await store.session(TENANT, SESSION)
    assert session is not None
    assert session.usage == Usage(20, 10, 6, 4, 2, unavailable=True)
    assert (session.context_tokens, session.last_run_id, session.last_state) == (77, "r2", RunState.SUCCEEDED)


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
