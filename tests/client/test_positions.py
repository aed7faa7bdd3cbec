"""What a subscription asks for after a loss, and which messages it hands on."""

import pytest
from grpc import StatusCode

from laneway.errors import Details, make_error
from laneway.positions import Position, is_terminal
from laneway.v1 import agent_pb2, event_pb2, run_pb2


def stored(seq: int, *, run_id: str = "run_1", **payload: object) -> event_pb2.Event:
    payload = payload or {"assistant": event_pb2.AssistantEvent(message_id="m", delta="x")}
    return event_pb2.Event(run_id=run_id, seq=seq, cursor=f"c{seq}", **payload)  # type: ignore[arg-type]


def end(seq: int) -> event_pb2.Event:
    return stored(seq, lifecycle=event_pb2.LifecycleEvent(phase=event_pb2.LIFECYCLE_PHASE_ERROR))


def progress(cursor: str) -> event_pb2.Event:
    return event_pb2.Event(progress=event_pb2.ProgressEvent(cursor=cursor))


def snapshot(first_seq: int, last_seq: int) -> event_pb2.Event:
    run = run_pb2.Run(run_id="run_1")
    return event_pb2.Event(snapshot=event_pb2.SnapshotEvent(run=run, first_seq=first_seq, last_seq=last_seq))


def of_run(after_seq: int | None = None) -> Position:
    return Position(agent_pb2.SubscribeRequest(run_id="run_1", after_seq=after_seq))


def of_session(cursor: str = "") -> Position:
    return Position(agent_pb2.SubscribeRequest(session_key="s", cursor=cursor))


def test_a_run_goes_on_behind_its_last_event() -> None:
    position = of_run(after_seq=0)
    taken = [position.take(event) for event in (stored(1), stored(2), stored(2), stored(1), stored(3))]
    assert taken == [True, True, False, False, True]
    assert position.request == agent_pb2.SubscribeRequest(run_id="run_1", after_seq=3)


@pytest.mark.parametrize("phase", event_pb2.LifecyclePhase.values())
def test_only_end_and_error_are_terminal(phase: event_pb2.LifecyclePhase) -> None:
    event = stored(4, lifecycle=event_pb2.LifecycleEvent(phase=phase))
    position = of_run(after_seq=0)
    assert position.take(event)
    assert is_terminal(event) == position.is_at_end == (phase in (7, 8))


def test_a_snapshot_is_handed_on_once_and_is_where_a_lost_stream_goes_on() -> None:
    position = of_run()
    assert not position.request.HasField("after_seq")
    assert position.take(snapshot(first_seq=5, last_seq=9))
    assert position.request.after_seq == 4
    assert not position.take(snapshot(first_seq=6, last_seq=9))
    assert position.request.after_seq == 4


def test_without_anything_heard_the_same_is_asked_again() -> None:
    assert not of_run().request.HasField("after_seq")
    assert of_run(after_seq=0).request.HasField("after_seq")
    assert of_session().request == agent_pb2.SubscribeRequest(session_key="s")


def test_a_session_goes_on_at_the_cursor_of_its_last_event_or_sign_of_life() -> None:
    position = of_session("c0")
    assert [position.take(stored(7, run_id="a")), position.take(stored(1, run_id="b"))] == [True, True]
    assert position.request.cursor == "c1"
    assert not position.take(progress("later"))
    assert position.request.cursor == "later"


def test_the_end_of_a_run_is_not_the_end_of_its_session() -> None:
    position = of_session()
    assert position.take(end(3))
    assert not position.is_at_end


def test_signs_of_life_of_a_run_change_nothing() -> None:
    position = of_run(after_seq=2)
    assert not position.take(progress("c"))
    assert position.request == agent_pb2.SubscribeRequest(run_id="run_1", after_seq=2)


def test_a_server_that_leaves_says_where_a_session_goes_on() -> None:
    draining = make_error(StatusCode.UNAVAILABLE, "", Details(reason="DRAINING", metadata={"cursor": "there"}))
    session, run = of_session(), of_run(after_seq=1)
    session.lose(draining)
    run.lose(draining)
    session.lose(make_error(StatusCode.UNAVAILABLE, "", Details(metadata={"cursor": "not of the service"})))
    assert session.request.cursor == "there"
    assert run.request == agent_pb2.SubscribeRequest(run_id="run_1", after_seq=1)


def test_what_else_was_asked_for_is_asked_again_and_the_callers_request_stays() -> None:
    request = agent_pb2.SubscribeRequest(run_id="run_1", after_seq=0, verbose=agent_pb2.VERBOSITY_FULL)
    request.streams.append(event_pb2.STREAM_KIND_TOOL)
    position = Position(request)
    position.take(stored(4))
    position.request.run_id = "another"
    assert position.request.verbose == agent_pb2.VERBOSITY_FULL
    assert list(position.request.streams) == [event_pb2.STREAM_KIND_TOOL]
    assert (position.request.run_id, request.after_seq) == ("run_1", 0)


def test_only_a_run_without_further_events_may_end_with_ok() -> None:
    assert of_run(after_seq=9).may_end
    assert not of_session().may_end
    assert not Position(agent_pb2.SubscribeRequest(all=True)).may_end
    position = of_run()
    position.take(snapshot(first_seq=3, last_seq=2))
    assert position.may_end
    position.take(stored(3))
    assert not position.may_end
