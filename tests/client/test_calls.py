"""Unary calls against faults that are scripted: what is repeated, with what, and for how long."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest
from tests.client.scripted_service import (
    DRAINING,
    LOST,
    RUN_ID,
    ScriptedService,
    Silence,
    accepted,
    refusal,
    waited,
)

from laneway.calls import Loss, Timeouts
from laneway.client import LanewayClient
from laneway.errors import ClientClosed, DeadlineExceeded, InvalidRequest, LimitReached, NotFound, Unavailable
from laneway.v1 import admin_pb2, agent_pb2, run_pb2, session_pb2

Code = grpc.StatusCode


async def test_a_message_whose_answer_is_lost_is_repeated_with_one_key(
    script: ScriptedService, client: LanewayClient, losses: list[Loss]
) -> None:
    script.script["Agent"] = [[LOST], [DRAINING], [Silence()], [accepted()]]
    answer = await client.agent("hello")
    assert answer == accepted()
    requests = script.requests["Agent"]
    assert len(requests) == 4
    assert {request.idempotency_key for request in requests} == {requests[0].idempotency_key}
    assert requests[0].idempotency_key.startswith("client-")
    assert [(loss.number, loss.error.status) for loss in losses] == [
        (1, Code.UNAVAILABLE),
        (2, Code.UNAVAILABLE),
        (3, Code.DEADLINE_EXCEEDED),
    ]


async def test_each_message_has_a_key_of_its_own_and_the_callers_request_is_left_alone(
    script: ScriptedService, client: LanewayClient
) -> None:
    script.script["Agent"] = [[accepted()], [accepted()], [accepted()]]
    request = agent_pb2.AgentRequest(message="hello", session_key="s")
    await client.agent(request)
    await client.agent(request)
    assert request == agent_pb2.AgentRequest(message="hello", session_key="s")
    await client.agent(agent_pb2.AgentRequest(message="hello", idempotency_key="mine"))
    first, second, third = script.requests["Agent"]
    assert first.idempotency_key != second.idempotency_key
    assert (first.session_key, third.idempotency_key) == ("s", "mine")


async def test_the_servers_suggestion_is_waited_for(
    script: ScriptedService, client: LanewayClient, losses: list[Loss]
) -> None:
    script.script["Agent"] = [[refusal(Code.UNAVAILABLE, "STORE_UNAVAILABLE", retry_after_s=0.4)], [accepted()]]
    now = asyncio.get_running_loop().time
    began = now()
    await client.agent("hello")
    assert now() - began >= 0.4
    assert losses[0].pause_s == pytest.approx(0.4)
    assert (losses[0].error.reason, losses[0].error.retry_after_s) == ("STORE_UNAVAILABLE", 0.4)


async def test_a_suggestion_beyond_the_deadline_is_told_to_the_caller(
    script: ScriptedService, hurried: LanewayClient
) -> None:
    script.script["Agent"] = [[refusal(Code.UNAVAILABLE, "DRAINING", retry_after_s=30)]]
    with pytest.raises(Unavailable) as caught:
        await hurried.agent("hello")
    assert caught.value.retry_after_s == 30
    assert len(script.requests["Agent"]) == 1


async def test_the_deadline_bounds_all_attempts(script: ScriptedService, hurried: LanewayClient) -> None:
    script.script["Agent"] = [[Silence()] for _ in range(10)]
    now = asyncio.get_running_loop().time
    began = now()
    with pytest.raises(DeadlineExceeded) as caught:
        await hurried.agent("hello", deadline_s=0.8)
    assert now() - began < 2
    assert 2 <= len(script.requests["Agent"]) <= 3
    assert caught.value.__notes__ == [f"given up after {len(script.requests['Agent'])} attempts"]


@pytest.mark.parametrize(
    ("status", "error_class"),
    [
        (refusal(Code.INVALID_ARGUMENT, "MESSAGE_TOO_LONG", field="message"), InvalidRequest),
        (refusal(Code.RESOURCE_EXHAUSTED, "QUEUE_FULL", retry_after_s=1), LimitReached),
    ],
)
async def test_a_refusal_is_not_repeated(
    script: ScriptedService, client: LanewayClient, status: grpc.Status, error_class: type[Exception]
) -> None:
    script.script["Agent"] = [[status]]
    with pytest.raises(error_class, match="said the service"):
        await client.agent("hello")
    assert len(script.requests["Agent"]) == 1


async def test_metadata_goes_with_every_attempt(script: ScriptedService, client: LanewayClient) -> None:
    script.script["GetRun"] = [[LOST], [run_pb2.Run(run_id=RUN_ID)]]
    await client.get_run(RUN_ID)
    assert [metadata["x-who"] for metadata in script.metadata] == ["me", "me"]


async def test_what_on_loss_raises_ends_the_call(script: ScriptedService, client: LanewayClient) -> None:
    class EnoughError(Exception):
        pass

    async def refuse(_loss: Loss) -> None:
        raise EnoughError

    script.script["GetRun"] = [[LOST]]
    async with LanewayClient(client.target, on_loss=refuse) as strict:
        with pytest.raises(EnoughError):
            await strict.get_run(RUN_ID)


async def test_the_abort_of_a_run_is_repeated(script: ScriptedService, client: LanewayClient) -> None:
    script.script["Abort"] = [[LOST], [agent_pb2.AbortResponse(aborted_run_ids=[RUN_ID])]]
    answer = await client.abort(RUN_ID, reason="enough")
    assert list(answer.aborted_run_ids) == [RUN_ID]
    assert script.requests["Abort"] == [agent_pb2.AbortRequest(run_id=RUN_ID, reason="enough")] * 2


@pytest.mark.parametrize("method", ["Abort", "ResetSession", "DeleteSession", "Drain"])
async def test_what_could_meet_something_else_the_second_time_is_made_once(
    script: ScriptedService, client: LanewayClient, method: str
) -> None:
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "Abort": lambda: client.abort_session("s", clear_queued=True),
        "ResetSession": lambda: client.sessions.reset("s", force=True),
        "DeleteSession": lambda: client.sessions.delete("s"),
        "Drain": client.drain,
    }
    script.script[method] = [[LOST], [Silence()]]
    with pytest.raises(Unavailable):
        await calls[method]()
    assert len(script.requests[method]) == 1


async def test_calls_that_are_made_once_have_their_answers(script: ScriptedService, client: LanewayClient) -> None:
    script.script["Abort"] = [[agent_pb2.AbortResponse(cancelled_run_ids=["run_2"])]]
    script.script["ResetSession"] = [[session_pb2.ResetSessionResponse(aborted_run_ids=["run_3"])]]
    script.script["DeleteSession"] = [[session_pb2.DeleteSessionResponse(aborted_run_ids=["run_4"])]]
    script.script["Drain"] = [[admin_pb2.DrainResponse()]]
    assert list((await client.abort_session("s")).cancelled_run_ids) == ["run_2"]
    assert list((await client.sessions.reset("s")).aborted_run_ids) == ["run_3"]
    assert list((await client.sessions.delete("s", force=True)).aborted_run_ids) == ["run_4"]
    await client.drain()
    assert script.requests["DeleteSession"][0].force


async def test_a_call_that_is_made_once_is_bounded_too(script: ScriptedService, client: LanewayClient) -> None:
    script.script["Drain"] = [[Silence()]]
    with pytest.raises(DeadlineExceeded):
        await client.drain(deadline_s=0.1)


async def test_pages_are_read_one_by_one_and_each_is_repeated(script: ScriptedService, client: LanewayClient) -> None:
    def page(token: str, *run_ids: str) -> agent_pb2.ListRunsResponse:
        runs = [run_pb2.Run(run_id=run_id) for run_id in run_ids]
        return agent_pb2.ListRunsResponse(runs=runs, next_page_token=token)

    script.script["ListRuns"] = [[page("two", "a", "b")], [LOST], [page("three")], [page("", "c")]]
    filters = agent_pb2.ListRunsRequest(label="x", page_size=2)
    assert [run.run_id async for run in client.list_runs(filters)] == ["a", "b", "c"]
    assert [request.page_token for request in script.requests["ListRuns"]] == ["", "two", "two", "three"]
    assert {request.label for request in script.requests["ListRuns"]} == {"x"}
    assert filters.page_token == ""


async def test_cancelling_the_task_cancels_the_call(script: ScriptedService, client: LanewayClient) -> None:
    silence = Silence()
    script.script["Drain"] = [[silence]]
    task = asyncio.create_task(client.drain())
    await silence.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await silence.left.wait()


async def test_closing_the_client_ends_its_calls_with_an_error_and_not_with_a_cancellation(
    script: ScriptedService, client: LanewayClient
) -> None:
    silences = [Silence(), Silence()]
    script.script["Drain"], script.script["Subscribe"] = [[silences[0]]], [[silences[1]]]
    calling = asyncio.create_task(client.drain())
    reading = asyncio.create_task(anext(client.subscribe(agent_pb2.SubscribeRequest(all=True))))
    for silence in silences:
        await silence.reached.wait()
    await client.close()
    for task in (calling, reading):
        with pytest.raises(ClientClosed):
            await task
    with pytest.raises(ClientClosed):
        await client.get_run(RUN_ID)
    await client.close()


# --- wait ------------------------------------------------------------------------------------------------------------

RUNNING = waited(run_pb2.RUN_STATE_RUNNING, agent_pb2.TIMEOUT_KIND_WAIT_EXPIRED)
LEAVING = waited(run_pb2.RUN_STATE_RUNNING, agent_pb2.TIMEOUT_KIND_DRAINING)
MERGED = waited(run_pb2.RUN_STATE_MERGED, agent_pb2.TIMEOUT_KIND_WAIT_EXPIRED)
SUCCEEDED = waited(run_pb2.RUN_STATE_SUCCEEDED)


async def test_a_wait_goes_on_over_limits_servers_that_leave_and_losses(
    script: ScriptedService, client: LanewayClient, losses: list[Loss]
) -> None:
    script.script["Wait"] = [[RUNNING], [MERGED], [LEAVING], [LOST], [Silence()], [SUCCEEDED]]
    assert await client.wait(RUN_ID) == SUCCEEDED
    assert [loss.error.status for loss in losses] == [Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED]
    assert {request.timeout.ToMilliseconds() for request in script.requests["Wait"]} == {500}


@pytest.mark.parametrize(
    "state",
    [
        run_pb2.RUN_STATE_SUCCEEDED,
        run_pb2.RUN_STATE_FAILED,
        run_pb2.RUN_STATE_CANCELLED,
        run_pb2.RUN_STATE_TIMED_OUT,
    ],
)
async def test_every_end_ends_a_wait(script: ScriptedService, client: LanewayClient, state: run_pb2.RunState) -> None:
    script.script["Wait"] = [[waited(state)]]
    assert (await client.wait(RUN_ID)).state == state


async def test_a_wait_that_expires_answers_how_the_run_stands(script: ScriptedService, client: LanewayClient) -> None:
    script.script["Wait"] = [[RUNNING]]
    assert await client.wait(RUN_ID, timeout_s=0) == RUNNING
    (request,) = script.requests["Wait"]
    assert request.HasField("timeout")
    assert request.timeout.ToMilliseconds() == 0


async def test_a_wait_for_longer_than_one_call_may_last_is_several(
    script: ScriptedService, client: LanewayClient
) -> None:
    script.script["Wait"] = [[LEAVING] for _ in range(20)]
    assert await client.wait(RUN_ID, timeout_s=0.8) == LEAVING
    timeouts_ms = [request.timeout.ToMilliseconds() for request in script.requests["Wait"]]
    assert timeouts_ms[0] == 500
    assert timeouts_ms[1:] == sorted(timeouts_ms[1:], reverse=True)
    assert timeouts_ms[-1] == 0
    assert len(timeouts_ms) < 10


@pytest.mark.parametrize("timeout_s", [0.0, 0.5])
async def test_a_wait_without_any_answer_ends_shortly_after_its_timeout(
    script: ScriptedService, hurried: LanewayClient, timeout_s: float
) -> None:
    script.script["Wait"] = [[Silence()] for _ in range(9)]
    now = asyncio.get_running_loop().time
    began = now()
    with pytest.raises(DeadlineExceeded):
        await hurried.wait(RUN_ID, timeout_s=timeout_s)
    assert now() - began < timeout_s + 0.3 + 1.0


async def test_a_wait_without_timeout_ends_when_patience_does(script: ScriptedService, hurried: LanewayClient) -> None:
    script.script["Wait"] = [[RUNNING], *([LOST] for _ in range(99))]
    with pytest.raises(Unavailable):
        await hurried.wait(RUN_ID)
    assert len(script.requests["Wait"]) > 2


async def test_a_wait_for_nothing_is_refused(script: ScriptedService, client: LanewayClient) -> None:
    script.script["Wait"] = [[refusal(Code.NOT_FOUND, "RUN_NOT_FOUND", run_id=RUN_ID)]]
    with pytest.raises(NotFound) as caught:
        await client.wait(RUN_ID)
    assert caught.value.metadata == {"run_id": RUN_ID}


async def test_without_a_server_every_call_ends(tmp_path: Path) -> None:
    hasty = Timeouts(patience_s=0.3, attempt_s=0.3)
    async with LanewayClient(f"unix:{tmp_path}/nobody.sock", timeouts=hasty) as client:
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: client.agent("hello"),
            lambda: client.wait(RUN_ID, timeout_s=0),
            lambda: client.wait(RUN_ID),
            lambda: anext(client.subscribe(agent_pb2.SubscribeRequest(all=True))),
        ]
        for call in calls:
            with pytest.raises(Unavailable):
                await call()
        with pytest.raises(DeadlineExceeded):
            await client.drain()
