"""Subscribe over a real channel: filters, cursors, ends, and callers that go away (B-074)."""

import asyncio
from typing import Any

import grpc
import pytest
from tests.fakes.rpc_rows import STORE_ID, make_event, make_run
from tests.rpc.harness import Harness, refused

from laneway.v1 import agent_pb2, event_pb2
from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.events import AssistantDelta, Lifecycle, LifecyclePhase, StoredEvent, ToolPhase, ToolProgress
from lanewayd.messages import Payload
from lanewayd.records import RunState
from lanewayd.rpc.cursors import cursor_position, cursor_text
from lanewayd.runs.interface import Progress, Snapshot

_START = make_event(Lifecycle(LifecyclePhase.START, "running"), seq=1, position=11)
_DELTA = make_event(AssistantDelta("m", 0, 0, "Hi"), seq=2, position=14)
_TOOL = make_event(ToolProgress(ToolPhase.RESULT, "c", "t", result=Payload("shown")), seq=3, position=15)
_END = make_event(Lifecycle(LifecyclePhase.END, "succeeded"), seq=4, position=20)
_LOG = (_START, _DELTA, _TOOL, _END)


_Positions = tuple[int | None, int | None]


async def _events(agent: Any, **fields: Any) -> list[event_pb2.Event]:
    return [event async for event in agent.Subscribe(agent_pb2.SubscribeRequest(**fields))]


def _parsed(*stored: StoredEvent) -> list[event_pb2.Event]:
    return [event_pb2.Event.FromString(event.encoded) for event in stored]


async def test_a_run_is_shown_from_a_snapshot_to_its_end(harness: Harness, agent: Any) -> None:
    run = make_run(state=RunState.RUNNING)
    harness.logs.put(Snapshot(run, first_seq=1, last_seq=2), *_LOG, None)
    snapshot, *events = await _events(agent, run_id="run_1", verbose=agent_pb2.VERBOSITY_FULL)
    assert (snapshot.seq, snapshot.snapshot.run.run_id, snapshot.snapshot.last_seq) == (0, "run_1", 2)
    assert snapshot.time.ToDatetime() == harness.clock.now().replace(tzinfo=None)
    assert events == _parsed(*_LOG)
    assert harness.logs.asked == [("run", "tenant-a", "run_1", None)]


@pytest.mark.parametrize("after_seq", [0, 3, 2**63 - 1])
async def test_after_seq_is_passed_on_0_included(harness: Harness, agent: Any, after_seq: int) -> None:
    harness.logs.put(None)
    assert await _events(agent, run_id="run_1", after_seq=after_seq) == []
    assert harness.logs.asked == [("run", "tenant-a", "run_1", after_seq)]


@pytest.mark.parametrize("verbose", [agent_pb2.VERBOSITY_UNSPECIFIED, agent_pb2.VERBOSITY_OFF, agent_pb2.VERBOSITY_ON])
async def test_only_full_verbosity_shows_results_of_tools(
    harness: Harness, agent: Any, verbose: agent_pb2.Verbosity
) -> None:
    harness.logs.put(_TOOL, None)
    [event] = await _events(agent, run_id="run_1", verbose=verbose)
    assert (event.seq, event.cursor, event.tool.call_id) == (3, cursor_text(STORE_ID, 15), "c")
    assert not event.tool.HasField("result")


async def test_a_filter_lets_its_streams_and_the_terminal_event_through(harness: Harness, agent: Any) -> None:
    harness.logs.put(Snapshot(make_run(), 1, 4), *_LOG, None)
    streams = [event_pb2.STREAM_KIND_ASSISTANT, event_pb2.STREAM_KIND_PLAN]
    assert [event.seq for event in await _events(agent, run_id="run_1", streams=streams)] == [0, 2, 4]


async def test_a_session_is_read_from_its_cursor(harness: Harness, agent: Any) -> None:
    harness.logs.put(*_LOG, None)
    events = await _events(agent, session_key="Key", cursor=cursor_text(STORE_ID, 9))
    assert [cursor_position(event.cursor, STORE_ID) for event in events] == [11, 14, 15, 20]
    harness.logs.put(None)
    await _events(agent, session_key="Key")
    harness.logs.put(None)
    await _events(agent, all=True, cursor=events[-1].cursor)
    assert harness.logs.asked == [
        ("session", "tenant-a", "Key", 9),
        ("session", "tenant-a", "Key", None),
        ("all", "tenant-a", 20),
    ]


async def test_signs_of_life_carry_a_cursor_on_every_kind_of_subscription(harness: Harness, agent: Any) -> None:
    cursor = cursor_text(STORE_ID, 30)
    harness.logs.put(Progress(30), Progress(30), None)
    of_run, _ = await _events(agent, run_id="run_1", after_seq=0, streams=[event_pb2.STREAM_KIND_TOOL])
    assert (of_run.run_id, of_run.session_key, of_run.agent_id) == ("run_1", "agent:main:main", "main")
    assert (of_run.seq, of_run.progress.cursor, of_run.cursor) == (0, cursor, "")
    assert [asked[0] for asked in harness.runs.asked] == ["run"]
    harness.logs.put(_START, Progress(30), None)
    _, of_session = await _events(agent, session_key="MAIN")
    assert (of_session.run_id, of_session.session_key, of_session.agent_id) == ("", "agent:main:main", "")
    harness.logs.put(_START, Progress(30), None)
    _, of_all = await _events(agent, all=True)
    assert (of_all.run_id, of_all.session_key, of_all.progress.cursor) == ("", "", cursor)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("FIELD_INVALID", "target")),
        ({"run_id": ""}, ("FIELD_INVALID", "run_id")),
        ({"session_key": ""}, ("FIELD_INVALID", "session_key")),
        ({"all": False}, ("FIELD_INVALID", "all")),
        ({"session_key": "a\nb"}, ("SESSION_KEY_MALFORMED", "session_key")),
        ({"run_id": "r", "after_seq": -1}, ("FIELD_INVALID", "after_seq")),
        ({"run_id": "r", "cursor": cursor_text(STORE_ID, 1)}, ("FIELD_INVALID", "cursor")),
        ({"session_key": "k", "after_seq": 0}, ("FIELD_INVALID", "after_seq")),
        ({"all": True, "after_seq": 0}, ("FIELD_INVALID", "after_seq")),
        ({"session_key": "k", "cursor": "garbage"}, ("FIELD_INVALID", "cursor")),
        ({"all": True, "cursor": cursor_text("store-2", 1)}, ("FIELD_INVALID", "cursor")),
        ({"all": True, "view": 9}, ("ENUM_UNKNOWN", "view")),
        ({"all": True, "verbose": 9}, ("ENUM_UNKNOWN", "verbose")),
        ({"all": True, "streams": [99]}, ("ENUM_UNKNOWN", "streams")),
        ({"all": True, "streams": [0]}, ("ENUM_UNKNOWN", "streams")),
        ({"all": True, "view": agent_pb2.VIEW_CHAT}, ("NOT_AVAILABLE_YET", "view")),
    ],
)
async def test_a_subscription_that_is_refused_names_its_field(
    harness: Harness, agent: Any, fields: dict[str, Any], expected: tuple[str, str]
) -> None:
    refusal = await refused(agent.Subscribe(agent_pb2.SubscribeRequest(**fields)))
    assert (refusal.reason, refusal.metadata["field"]) == expected
    is_yet = refusal.reason == "NOT_AVAILABLE_YET"
    assert refusal.code is (grpc.StatusCode.UNIMPLEMENTED if is_yet else grpc.StatusCode.INVALID_ARGUMENT)
    assert harness.logs.asked == []


@pytest.mark.parametrize("code", [ErrorCode.CURSOR_PRUNED, ErrorCode.CURSOR_AHEAD])
async def test_errors_of_a_cursor_say_what_can_be_read(harness: Harness, agent: Any, code: ErrorCode) -> None:
    metadata = {"earliest_seq": "5", "latest_seq": "9", "earliest_position": "123", "latest_position": "140"}
    harness.logs.put(LanewayError(code, "Gone.", metadata=metadata))
    refusal = await refused(agent.Subscribe(agent_pb2.SubscribeRequest(run_id="run_1", after_seq=1)))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.OUT_OF_RANGE, code.value)
    assert refusal.metadata == {
        "earliest_seq": "5",
        "latest_seq": "9",
        "earliest_cursor": cursor_text(STORE_ID, 123),
    }


async def test_a_run_that_nobody_knows_is_not_found(harness: Harness, agent: Any) -> None:
    harness.logs.put(LanewayError(ErrorCode.RUN_NOT_FOUND, "No such run.", metadata={"run_id": "x"}))
    refusal = await refused(agent.Subscribe(agent_pb2.SubscribeRequest(run_id="x")))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND")


@pytest.mark.parametrize(
    ("fields", "items", "positions"),
    [
        ({"run_id": "run_1", "after_seq": 0}, (_START, _DELTA), (None, 14)),
        ({"session_key": "k"}, (_START, Progress(17)), (None, 17)),
        ({"all": True, "cursor": cursor_text(STORE_ID, 8)}, (), (None, 8)),
        ({"all": True}, (), (40, 40)),
        ({"all": True}, (), (None, None)),
    ],
)
async def test_a_server_that_leaves_says_where_to_go_on(
    harness: Harness, agent: Any, fields: dict[str, Any], items: tuple[Any, ...], positions: _Positions
) -> None:
    known_to_the_log, expected = positions
    metadata = {} if known_to_the_log is None else {"position": str(known_to_the_log)}
    harness.logs.put(*items, LanewayError(ErrorCode.DRAINING, "Leaving.", metadata=metadata, retry_after_s=2.0))
    refusal = await refused(agent.Subscribe(agent_pb2.SubscribeRequest(**fields)))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
    assert refusal.retry_after_s == 2.0
    assert refusal.metadata == ({} if expected is None else {"cursor": cursor_text(STORE_ID, expected)})


async def test_a_bug_in_mid_stream_ends_it_as_internal_after_what_was_sent(harness: Harness, agent: Any) -> None:
    harness.logs.put(_START, ValueError("a bug"))
    call = agent.Subscribe(agent_pb2.SubscribeRequest(run_id="run_1", after_seq=0))
    assert (await call.read()).seq == 1
    refusal = await refused(call.read())
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    assert harness.logs.open_count == 0


@pytest.mark.parametrize("target", [{"run_id": "run_1"}, {"session_key": "k"}, {"all": True}])
async def test_b074_a_subscriber_that_cancels_leaves_no_handler(
    harness: Harness, agent: Any, target: dict[str, Any]
) -> None:
    call = agent.Subscribe(agent_pb2.SubscribeRequest(**target))
    await harness.logs.opened.wait()
    call.cancel()
    await asyncio.wait_for(harness.logs.closed.wait(), 1)
    assert harness.logs.open_count == 0


async def test_b074_a_subscriber_whose_deadline_passes_leaves_no_handler(harness: Harness, agent: Any) -> None:
    call = agent.Subscribe(agent_pb2.SubscribeRequest(all=True), timeout=0.2)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call.read()
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await asyncio.wait_for(harness.logs.closed.wait(), 1)
    assert harness.logs.open_count == 0


async def test_b074_a_subscriber_whose_channel_closes_leaves_no_handler(
    harness: Harness, agent: Any, channel: grpc.aio.Channel
) -> None:
    call = agent.Subscribe(agent_pb2.SubscribeRequest(all=True))
    await harness.logs.opened.wait()
    await channel.close()
    await asyncio.wait_for(harness.logs.closed.wait(), 1)
    assert harness.logs.open_count == 0
    assert call.done()


async def test_b074_a_subscriber_that_goes_away_while_the_handler_waits_for_flow_control_leaves_no_handler(
    harness: Harness, agent: Any
) -> None:
    large = make_event(AssistantDelta("m", 0, 0, "x" * 900_000), seq=1)
    harness.logs.put(*[large] * 40)
    call = agent.Subscribe(agent_pb2.SubscribeRequest(all=True))
    assert (await call.read()).seq == 1
    assert not harness.logs.items.empty()
    call.cancel()
    await asyncio.wait_for(harness.logs.closed.wait(), 1)
    assert harness.logs.open_count == 0
    assert not harness.logs.items.empty()
