"""The contract of `Store`: accepting messages. Run against every implementation."""

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
    a_refusal,
    a_request,
    a_selector,
    accept_run,
    append_to,
    ended,
    ends,
    running,
)

from lanewayd.errors import ErrorCode, FieldError, LanewayError
from lanewayd.messages import Attachment
from lanewayd.records import Disposition, Priority, Run, RunRequest, RunState, SessionSettings
from lanewayd.store.interface import RunFilter, Store


async def refused(call: object, code: ErrorCode) -> LanewayError:
    with pytest.raises(LanewayError) as caught:
        await call  # type: ignore[misc]
    assert caught.value.code is code
    return caught.value


async def stored_run(store: Store, run_id: str) -> Run:
    run = await store.run(TENANT, run_id)
    assert run is not None
    return run


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
        model_source="request",
        thinking="low",
        seed=7,
        temperature=0.5,
        attachments=(Attachment("a.png", "image/png", "0" * 64, 5),),
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
    assert answers[2].run == await store.run(TENANT, "r4")
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
    again = await store.accept(accept_run("r2", key=a_key(), refusal=a_refusal(), now=NOW + timedelta(hours=1)))
    assert again == replace(first, duplicate=True, run=None, events=())
    assert await store.run(TENANT, "r2") is None


async def test_a_request_is_what_it_is_for_the_session_it_comes_into(store: Store) -> None:
    seen: list[SessionSettings] = []

    def adapt(request: RunRequest, settings: SessionSettings) -> RunRequest:
        seen.append(settings)
        return replace(request, model="acme/adapted")

    accepted = await store.accept(accept_run("r1", adapt=adapt))
    assert accepted.run is not None
    assert (accepted.run.request.model, (await stored_run(store, "r1")).request.model) == ("acme/adapted",) * 2
    assert seen == [SessionSettings()]


async def test_what_a_request_cannot_be_for_its_session_refuses_it_alone(store: Store) -> None:
    def adapt(request: RunRequest, settings: SessionSettings) -> RunRequest:
        raise LanewayError(ErrorCode.MODEL_NOT_CONFIGURED, "no model")

    refused, accepted = await asyncio.gather(
        store.accept(accept_run("r1", "s1", adapt=adapt)), store.accept(accept_run("r2", "s2")), return_exceptions=True
    )
    assert isinstance(refused, LanewayError)
    assert not isinstance(accepted, BaseException)
    assert (await store.run(TENANT, "r1"), await store.session(TENANT, "s1")) == (None, None)


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
    await refused(store.accept(accept_run("r2", "s2", refusal=a_refusal())), ErrorCode.QUEUE_FULL)
    assert (await store.accept(accept_run("r3", key=a_key(), refusal=a_refusal()))).duplicate
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
