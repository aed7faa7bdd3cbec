"""tests/soak/events: the oracle of the soak `events` notices what it is there for."""

import random

import pytest
from tests.soak.events.connections import Connection
from tests.soak.events.record import SharedRecord
from tests.soak.events.subscriber import Subscriber

from laneway.v1 import agent_pb2, event_pb2

RUN = "run_1"


def _event(seq: int, text: str = "", *, is_last: bool = False) -> event_pb2.Event:
    event = event_pb2.Event(run_id=RUN, seq=seq, cursor=f"c{seq}")
    if is_last:
        event.lifecycle.phase = event_pb2.LIFECYCLE_PHASE_END
    else:
        event.assistant.delta = text or f"piece {seq}"
    return event


LOG = [_event(1), _event(2), _event(3, is_last=True)]


def _shown(record: SharedRecord, *logs: list[event_pb2.Event]) -> None:
    """Each log to a subscriber of its own, all of the same run."""
    record.open(RUN, len(logs))
    for number, log in enumerate(logs):
        request = agent_pb2.SubscribeRequest(run_id=RUN, after_seq=0)
        connection = Connection("unix:/nowhere")
        subscriber = Subscriber(f"s{number}", request, record, connection, chance=random.Random(1), stay_events=10)
        for event in log:
            subscriber._take(event, event.SerializeToString())  # noqa: SLF001 - where an event arrives


def test_the_same_log_for_everybody_is_no_violation() -> None:
    record = SharedRecord()
    _shown(record, LOG, LOG)
    assert record.close(RUN) == 3
    assert record.violations == []
    assert (record.deliveries, record.stored, record.under_way) == (6, 3, [])


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ([LOG[0], _event(2, "other"), LOG[2]], "got other bytes"),
        ([LOG[0], LOG[2]], "instead of 2"),
        ([LOG[0], LOG[0], *LOG[1:]], "instead of 2"),
        ([LOG[0], LOG[1]], "1 times less"),
        ([LOG[0], _event(2, is_last=True)], "others got 3 events"),
        ([*LOG, _event(4)], "after the end"),
    ],
    ids=["other bytes", "a gap", "a double", "no end", "an early end", "more after the end"],
)
def test_what_one_of_them_gets_differently_is_noticed(second: list[event_pb2.Event], said: str) -> None:
    record = SharedRecord()
    _shown(record, LOG, second)
    record.close(RUN)
    assert any(said in text for text in record.violations), record.violations


def test_an_event_of_a_run_that_is_over_for_everybody_is_noticed() -> None:
    record = SharedRecord()
    _shown(record, LOG)
    record.close(RUN)
    record.see("late", LOG[2], LOG[2].SerializeToString())
    assert "had seen to its end" in record.violations[0]


def test_a_subscriber_asks_for_what_follows_the_last_event_that_it_has() -> None:
    record = SharedRecord()
    record.open(RUN, 1)
    request = agent_pb2.SubscribeRequest(all=True, cursor="c0")
    subscriber = Subscriber(
        "all", request, record, Connection("unix:/nowhere"), chance=random.Random(1), stay_events=10
    )
    subscriber._take(LOG[0], LOG[0].SerializeToString())  # noqa: SLF001
    assert request.cursor == "c1"
