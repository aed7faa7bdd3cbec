"""Health: names, Check, List, Watch (the parts of B-081 that need no drain)."""

import asyncio
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.rpc.harness import Harness

from lanewayd.rpc.health import LIVENESS
from lanewayd.rpc.server import SERVICE_NAMES

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
_READINESS = ("", *SERVICE_NAMES)


@pytest.fixture
def health(channel: grpc.aio.Channel) -> Any:
    return health_pb2_grpc.HealthStub(channel)


def _request(name: str) -> health_pb2.HealthCheckRequest:
    return health_pb2.HealthCheckRequest(service=name)


def test_the_services_are_those_of_the_contract() -> None:
    assert SERVICE_NAMES == ("laneway.v1.AgentService", "laneway.v1.SessionService", "laneway.v1.AdminService")


async def test_readiness_follows_the_service_and_liveness_does_not(harness: Harness, health: Any) -> None:
    for is_ready in (False, True, False):
        harness.health.set_ready(is_ready)
        for name in _READINESS:
            answer = await health.Check(_request(name))
            assert answer.status == (_SERVING if is_ready else _NOT_SERVING)
        assert (await health.Check(_request(LIVENESS))).status == _SERVING


@pytest.mark.parametrize("name", ["laneway.v1.Nothing", "AgentService", "laneway"])
async def test_a_name_that_nobody_serves_is_not_found(health: Any, name: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await health.Check(_request(name))
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND
    watch = health.Watch(_request(name))
    assert (await watch.read()).status == _UNKNOWN
    watch.cancel()


async def test_list_shows_all_names(harness: Harness, health: Any) -> None:
    harness.health.set_ready(True)
    statuses = (await health.List(health_pb2.HealthListRequest())).statuses  # type: ignore[attr-defined]
    assert {name: answer.status for name, answer in statuses.items()} == dict.fromkeys(
        (*_READINESS, LIVENESS), _SERVING
    )


@pytest.mark.parametrize("name", _READINESS)
async def test_a_watcher_is_told_of_each_change_once(harness: Harness, health: Any, name: str) -> None:
    watch = health.Watch(_request(name))
    assert (await watch.read()).status == _NOT_SERVING
    for is_ready in (True, False, True):
        harness.health.set_ready(is_ready)
        harness.health.set_ready(is_ready)
        assert (await watch.read()).status == (_SERVING if is_ready else _NOT_SERVING)
    watch.cancel()


async def test_a_watcher_of_liveness_hears_nothing_of_readiness(harness: Harness, health: Any) -> None:
    live, ready = health.Watch(_request(LIVENESS)), health.Watch(_request(""))
    assert (await live.read()).status == _SERVING
    assert (await ready.read()).status == _NOT_SERVING
    harness.health.set_ready(True)
    assert (await ready.read()).status == _SERVING
    next_read = asyncio.ensure_future(live.read())
    harness.health.set_ready(False)
    assert (await ready.read()).status == _NOT_SERVING
    assert not next_read.done()
    live.cancel()
    ready.cancel()
    with pytest.raises(asyncio.CancelledError):
        await next_read
