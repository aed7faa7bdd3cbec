"""Streams against faults that are scripted: taken up again where they stood, cancelled, bounded."""

import asyncio
from contextlib import aclosing

import grpc
import pytest
from tests.client.scripted_service import (
    DRAINING,
    LOST,
    RUN_ID,
    ScriptedService,
    Silence,
    accepted,
    end,
    piece,
    refusal,
)

from laneway.calls import Loss
from laneway.client import LanewayClient
from laneway.errors import CursorPruned, DeadlineExceeded, NotFound, Unavailable
from laneway.v1 import agent_pb2, event_pb2, run_pb2, session_pb2

Code = grpc.StatusCode
OF_RUN = agent_pb2.SubscribeRequest(run_id=RUN_ID, after_seq=0)
OF_SESSION = agent_pb2.SubscribeRequest(session_key="s")


def progress(cursor: str) -> event_pb2.Event:
    return event_pb2.Event(progress=event_pb2.ProgressEvent(cursor=cursor))


async def test_events_come_once_and_in_order_over_losses_of_every_kind(
    script: ScriptedService, client: LanewayClient
) -> None:
    script.script["Subscribe"] = [
        [LOST],
        [piece(1), piece(2), refusal(Code.CANCELLED, "")],
        [progress("c"), piece(3), DRAINING],
        [Silence()],
        [piece(4)],
        [piece(4), piece(5), Silence()],
        [end(6), Silence()],
    ]
    events = [event async for event in client.subscribe(OF_RUN)]
    assert events == [piece(1), piece(2), piece(3), piece(4), piece(5), end(6)]
    assert [request.after_seq for request in script.requests["Subscribe"]] == [0, 0, 2, 3, 3, 4, 5]


async def test_the_terminal_event_ends_the_call_though_the_server_leaves_it_open(
    script: ScriptedService, client: LanewayClient
) -> None:
    silence = Silence()
    script.script["Subscribe"] = [[end(1), silence]]
    assert [event async for event in client.subscribe(OF_RUN)] == [end(1)]
    await silence.left.wait()


async def test_who_leaves_the_iteration_cancels_its_call(script: ScriptedService, client: LanewayClient) -> None:
    silence = Silence()
    script.script["Subscribe"] = [[piece(1), silence]]
    async with aclosing(client.subscribe(OF_RUN)) as events:
        async for event in events:
            assert event == piece(1)
            break
    await silence.left.wait()


async def test_who_is_cancelled_cancels_its_call(script: ScriptedService, client: LanewayClient) -> None:
    silence = Silence()
    script.script["Subscribe"] = [[silence]]
    task = asyncio.create_task(anext(client.subscribe(OF_RUN)))
    await silence.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await silence.left.wait()


async def test_a_snapshot_comes_once(script: ScriptedService, client: LanewayClient) -> None:
    run = run_pb2.Run(run_id=RUN_ID)
    snapshot = event_pb2.Event(snapshot=event_pb2.SnapshotEvent(run=run, first_seq=3, last_seq=4))
    script.script["Subscribe"] = [[LOST], [snapshot, LOST], [piece(3), end(4)]]
    events = [event async for event in client.subscribe(agent_pb2.SubscribeRequest(run_id=RUN_ID))]
    assert events == [snapshot, piece(3), end(4)]
    requests = script.requests["Subscribe"]
    assert [request.HasField("after_seq") for request in requests] == [False, False, True]
    assert requests[2].after_seq == 2


async def test_a_session_goes_on_where_it_stood(script: ScriptedService, client: LanewayClient) -> None:
    script.script["Subscribe"] = [
        [DRAINING],
        [piece(1, run_id="a"), end(2, run_id="a"), LOST],
        [progress("later")],
        [piece(3, run_id="b"), Silence()],
    ]
    async with aclosing(client.subscribe(OF_SESSION)) as events:
        seen = [(event.run_id, event.seq) for event in [await anext(events) for _ in range(3)]]
    assert seen == [("a", 1), ("a", 2), ("b", 3)]
    cursors = [request.cursor for request in script.requests["Subscribe"]]
    assert cursors == ["", "where it stood", "c2", "later"]


@pytest.mark.parametrize("after_seq", [None, 9])
async def test_a_run_without_further_events_ends_without_any(
    script: ScriptedService, client: LanewayClient, after_seq: int | None
) -> None:
    script.script["Subscribe"] = [[]]
    request = agent_pb2.SubscribeRequest(run_id=RUN_ID, after_seq=after_seq)
    assert [event async for event in client.subscribe(request)] == []


async def test_pruned_events_are_told_also_after_a_loss(script: ScriptedService, client: LanewayClient) -> None:
    pruned = refusal(Code.OUT_OF_RANGE, "CURSOR_PRUNED", earliest_seq="70", latest_seq="90", earliest_cursor="e")
    script.script["Subscribe"] = [[piece(1), LOST], [pruned]]
    events = client.subscribe(OF_RUN)
    assert await anext(events) == piece(1)
    with pytest.raises(CursorPruned) as caught:
        await anext(events)
    assert (caught.value.earliest_seq, caught.value.latest_seq, caught.value.earliest_cursor) == (70, 90, "e")


async def test_an_unknown_run_is_refused_at_once(script: ScriptedService, client: LanewayClient) -> None:
    script.script["Subscribe"] = [[refusal(Code.NOT_FOUND, "RUN_NOT_FOUND")]]
    with pytest.raises(NotFound):
        await anext(client.subscribe(OF_RUN))


async def test_patience_with_a_lost_server_ends(
    script: ScriptedService, hurried: LanewayClient, losses: list[Loss]
) -> None:
    script.script["Subscribe"] = [[piece(1), LOST], *([LOST] for _ in range(99))]
    events = hurried.subscribe(OF_RUN)
    assert await anext(events) == piece(1)
    with pytest.raises(Unavailable):
        async with asyncio.timeout(5):
            await anext(events)
    assert [loss.number for loss in losses] == list(range(1, len(losses) + 1))


async def test_patience_with_a_silent_server_ends(script: ScriptedService, hurried: LanewayClient) -> None:
    silences = [Silence() for _ in range(20)]
    script.script["Subscribe"] = [[silence] for silence in silences]
    with pytest.raises(DeadlineExceeded, match=r"nothing was heard on the stream for 0\.3 s"):
        async with asyncio.timeout(5):
            await anext(hurried.subscribe(OF_SESSION))
    for silence in silences[: len(script.requests["Subscribe"])]:
        await silence.left.wait()


async def test_each_event_begins_patience_anew(script: ScriptedService, client: LanewayClient) -> None:
    # Each loss costs 0.1 s of pause at most; without a new beginning the pauses would grow beyond the patience.
    script.script["Subscribe"] = [*([piece(seq), LOST] for seq in range(1, 12)), [end(12)]]
    assert [event.seq async for event in client.subscribe(OF_RUN)] == list(range(1, 13))


async def test_a_filtered_stream_may_be_silent_for_long(
    script: ScriptedService, hurried: LanewayClient, losses: list[Loss]
) -> None:
    silence = Silence()
    script.script["Subscribe"] = [[silence]]
    request = agent_pb2.SubscribeRequest(session_key="s", streams=[event_pb2.STREAM_KIND_TOOL])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.8):  # longer than the silence that the client stands
            await anext(hurried.subscribe(request))
    assert losses == []
    await silence.left.wait()


async def test_run_is_the_acceptance_and_then_the_log(script: ScriptedService, client: LanewayClient) -> None:
    script.script["Agent"] = [[LOST], [accepted()]]
    script.script["Subscribe"] = [[piece(1), LOST], [end(2)]]
    request = agent_pb2.AgentRequest(message="hello", idempotency_key="k")
    first, *events = [event async for event in client.run(request, verbose=agent_pb2.VERBOSITY_FULL)]
    assert first == event_pb2.Event(run_id=RUN_ID, session_key="agent:main:s", agent_id="main", accepted=accepted())
    assert events == [piece(1), end(2)]
    assert script.requests["Agent"] == [request, request]
    assert {request.verbose for request in script.requests["Subscribe"]} == {agent_pb2.VERBOSITY_FULL}
    assert [request.after_seq for request in script.requests["Subscribe"]] == [0, 1]


async def test_leaving_a_run_cancels_its_stream(script: ScriptedService, client: LanewayClient) -> None:
    silence = Silence()
    script.script["Agent"], script.script["Subscribe"] = [[accepted()]], [[silence]]
    async with aclosing(client.run("hello")) as events:
        await anext(events)
        following = asyncio.create_task(anext(events))
        await silence.reached.wait()
        following.cancel()
        await asyncio.wait([following])
    await silence.left.wait()


async def test_an_export_joins_its_lines_and_is_not_begun_anew(script: ScriptedService, client: LanewayClient) -> None:
    def line(text: str, *, continues: bool = False) -> session_pb2.ExportSessionResponse:
        return session_pb2.ExportSessionResponse(line=text, line_continues=continues)

    script.script["ExportSession"] = [
        [line("header"), line("a", continues=True), line("b", continues=True), line("c")],
        [line("header"), LOST],
    ]
    assert [text async for text in client.sessions.export("s")] == ["header", "abc"]
    with pytest.raises(Unavailable):
        [text async for text in client.sessions.export("s")]
