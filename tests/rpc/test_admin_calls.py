"""AdminService over a real channel."""

from typing import Any

from tests.fakes.rpc_rows import ACCEPTED_AT
from tests.rpc.harness import Harness

from laneway.v1 import admin_pb2
from lanewayd.records import RunState
from lanewayd.runs.interface import LaneStatus


async def test_the_status_shows_lanes_runs_and_store(harness: Harness, admin: Any) -> None:
    service = harness.admin
    service.lanes = (LaneStatus("main", 8, 2, 1), LaneStatus("cron", 1, 0, 0))
    service.runs_by_state = {RunState.RUNNING: 2, RunState.TIMED_OUT: 1}
    service.features = ("b", "a")
    service.sessions, service.subscribers, service.store_bytes, service.commit_ms = 3, 4, 5_000_000_000, 1.5
    service.store_path = "/home/\udc80/laneway.db"
    status = await admin.GetStatus(admin_pb2.GetStatusRequest())
    assert (status.version, list(status.features), status.draining) == ("0.1.0", ["a", "b"], False)
    assert status.started_at.ToDatetime(tzinfo=ACCEPTED_AT.tzinfo) == ACCEPTED_AT
    assert [(lane.name, lane.width, lane.active, lane.queued) for lane in status.lanes] == [
        ("cron", 1, 0, 0),
        ("main", 8, 2, 1),
    ]
    assert dict(status.runs_by_state) == {"RUN_STATE_RUNNING": 2, "RUN_STATE_TIMED_OUT": 1}
    assert (status.sessions, status.subscribers) == (3, 4)
    assert (status.store.path, status.store.bytes, status.store.commit_ms) == (
        "/home/\ufffd/laneway.db",
        5_000_000_000,
        1.5,
    )


async def test_drain_answers_at_once_and_again(harness: Harness, admin: Any) -> None:
    for _ in range(2):
        assert await admin.Drain(admin_pb2.DrainRequest()) == admin_pb2.DrainResponse()
    assert harness.admin.draining
    assert (await admin.GetStatus(admin_pb2.GetStatusRequest())).draining
