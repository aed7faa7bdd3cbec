"""The contract of `Store`: messages that other runs take in (D-7). Run against every implementation."""

import pytest
from tests.fakes.store_codec import decode
from tests.fakes.store_commands import (
    NOW,
    SESSION,
    TENANT,
    a_request,
    accept_run,
    an_entry,
    append_to,
    ended,
    ends,
    running,
    start_run,
)

from lanewayd.errors import CollectionChanged, IntakeNotEmpty
from lanewayd.events import MessageEnded, NewEvent
from lanewayd.records import Disposition, DropPolicy, QueueMode, QueueRules, Run, RunState
from lanewayd.store.interface import Injection, InjectMessages, Store

STEER = QueueRules(QueueMode.STEER, 20, DropPolicy.SUMMARIZE, can_join=lambda _host, _message: True)
COLLECT_ONE = QueueRules(QueueMode.COLLECT, 1, DropPolicy.SUMMARIZE)


async def the_run(store: Store, run_id: str) -> Run:
    run = await store.run(TENANT, run_id)
    assert run is not None
    return run


async def steered(store: Store, run_id: str) -> None:
    accepted = await store.accept(accept_run(run_id, queue=STEER, request=a_request(queue_mode="steer")))
    assert accepted.disposition == Disposition.STEERED


def injection_of(run_id: str) -> Injection:
    said = MessageEnded(f"m {run_id}", "user", f"e {run_id}", "hello", total_bytes=5)
    return Injection(run_id, an_entry(f"e {run_id}"), NewEvent(NOW, said))


async def test_a_turn_takes_in_what_it_collected_and_nothing_of_it_when_one_message_waits_no_more(store: Store) -> None:
    for run_id in ("r1", "r2", "r3"):
        await store.accept(accept_run(run_id))
    await ended(store, "gone", "agent:main:elsewhere")
    await store.accept(accept_run("other", "agent:main:other"))
    for gone in ("gone", "other", "never"):
        with pytest.raises(CollectionChanged):
            await store.start(start_run("r1", collected=("r2", gone)))
    assert {(await the_run(store, run_id)).state for run_id in ("r1", "r2", "other")} == {RunState.QUEUED}
    started = await store.start(start_run("r1", collected=("r2", "r3")))
    assert [(run.run_id, run.state, run.host_run_id) for run in started.merged] == [
        ("r2", RunState.MERGED, "r1"),
        ("r3", RunState.MERGED, "r1"),
    ]


async def test_a_turn_tells_of_all_that_was_dropped_or_does_not_begin(store: Store) -> None:
    await running(store, "r0")
    for run_id in ("r1", "r2", "r3"):
        await store.accept(accept_run(run_id, queue=COLLECT_ONE, request=a_request(queue_mode="collect")))
    await store.append(append_to("r0", 2, ends()))
    for wrong in (0, 1, 3):
        with pytest.raises(CollectionChanged):
            await store.start(start_run("r3", dropped_count=wrong))
    assert (await the_run(store, "r3")).state is RunState.QUEUED
    assert (await store.waiting_behind(await the_run(store, "r3"), 10)).dropped_count == 2
    await store.start(start_run("r3", dropped_count=2))
    assert (await store.waiting_behind(await the_run(store, "r3"), 10)).dropped_count == 0


async def test_messages_that_were_taken_in_end_with_their_host_and_count_no_usage(store: Store) -> None:
    await running(store, "r1")
    await steered(store, "r2")
    with pytest.raises(IntakeNotEmpty):
        await store.append(append_to("r1", 2, ends()))
    for _ in range(2):  # repeated, it does nothing and gives the same answer
        injected = await store.inject(InjectMessages("r1", 1, NOW, (injection_of("r2"), injection_of("not mine"))))
        assert (injected.taken, injected.last_seq) == (("r2",), 3)
    appended = await store.append(append_to("r1", 4, ends()))
    assert [run.run_id for run in appended.settled] == ["r2"]
    run = await the_run(store, "r2")
    assert (run.state, run.host_run_id, run.usage) == (RunState.SUCCEEDED, "r1", None)
    assert run.payloads == (await the_run(store, "r1")).payloads
    session = await store.session(TENANT, SESSION)
    assert session is not None
    assert (session.usage.input_tokens, session.usage.output_tokens) == (10, 5)


async def test_messages_whose_host_fails_wait_again_behind_what_came_before_them(store: Store) -> None:
    await running(store, "r1")
    await steered(store, "r2")
    await store.accept(accept_run("r3"))
    await steered(store, "r4")
    appended = await store.append(append_to("r1", 2, ends(RunState.CANCELLED)))
    assert [(run.run_id, run.state, run.host_run_id) for run in appended.detached] == [
        ("r2", RunState.QUEUED, ""),
        ("r4", RunState.QUEUED, ""),
    ]
    changes = [decode(event.encoded)["queue"] for event in appended.events if event.run_id != "r1"]
    assert [(change["phase"], change["host_run_id"], change["position"]) for change in changes] == [
        ("detached", "r1", 0),
        ("detached", "r1", 2),
    ]
