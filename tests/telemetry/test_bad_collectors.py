"""A collector that is dead, slow or lying: runs do not notice, the log says it once, and the server leaves in time."""

import json
import socket
import time
from collections.abc import Iterator

import pytest
from tests.fakes.model_server import ModelServer
from tests.fakes.otlp_receiver import Manner, OtlpReceiver
from tests.fakes.server_process import ServerProcess
from tests.telemetry.conftest import MakeServer

SECRET = "canary-header-77aa"
LEAVING_LIMIT_S = 2.0
"""What telemetry may add to the exit; the rest of it is the machine's."""


@pytest.fixture
def black_hole() -> Iterator[str]:
    """An address that takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def complaints(server: ServerProcess) -> list[dict[str, object]]:
    """What the log says of telemetry."""
    lines = [json.loads(line) for line in server.log.splitlines()]
    return [line for line in lines if line["logger"].startswith("lanewayd.telemetry")]


async def work_and_leave(server: ServerProcess, model: ModelServer) -> float:
    """Twenty runs through a queue of eight spans, then a drain; the seconds that the exit took."""
    server.variables |= {"OTEL_BSP_MAX_QUEUE_SIZE": "8", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4"}
    server.variables["OTEL_EXPORTER_OTLP_HEADERS"] = f"authorization=Bearer%20{SECRET}"
    await server.start()
    for _ in range(20):
        ended = await server.wait((await server.accept()).run_id)
        assert ended.payloads[0].text == "ok"
    began_s = time.monotonic()
    server.terminate()
    assert await server.exited() == 0
    assert SECRET not in server.log
    assert len(model.requests) == 20
    return time.monotonic() - began_s


@pytest.mark.parametrize("manner", [Manner.SLOW, Manner.LYING, Manner.BUSY, Manner.GARBAGE])
async def test_runs_do_not_notice_a_collector_that_misbehaves(
    make_server: MakeServer, model: ModelServer, receiver: OtlpReceiver, manner: Manner
) -> None:
    receiver.manner = manner
    server = make_server()
    left_after_s = await work_and_leave(server, model)
    assert left_after_s < LEAVING_LIMIT_S + 8
    assert receiver.exports > 0
    assert not receiver.spans
    assert len(complaints(server)) <= 3


@pytest.mark.parametrize("address", ["nobody", "black_hole"])
async def test_runs_do_not_notice_a_collector_that_is_not_there(
    make_server: MakeServer, model: ModelServer, address: str, request: pytest.FixtureRequest
) -> None:
    server = make_server(variables={"OTEL_EXPORTER_OTLP_ENDPOINT": request.getfixturevalue(address)})
    left_after_s = await work_and_leave(server, model)
    assert left_after_s < LEAVING_LIMIT_S + 8
    told = complaints(server)
    assert 1 <= len(told) <= 3
    assert told[0]["message"] in ("telemetry is not delivered", "telemetry left behind")


async def test_what_was_not_sent_yet_is_sent_when_the_server_leaves(
    make_server: MakeServer, receiver: OtlpReceiver
) -> None:
    server = make_server(variables={"OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_METRIC_EXPORT_INTERVAL": "3600000"})
    await server.start()
    await server.wait((await server.accept()).run_id)
    assert receiver.exports == 0
    server.terminate()
    assert await server.exited() == 0
    assert [span.name for span in receiver.spans] == ["chat any", "invoke_agent main"]
    assert "laneway.runs.ended" in receiver.metrics


async def test_a_collector_that_comes_back_gets_what_comes_then(
    make_server: MakeServer, receiver: OtlpReceiver
) -> None:
    receiver.manner = Manner.BUSY
    server = make_server()
    await server.start()
    await server.wait((await server.accept()).run_id)
    await receiver.until(lambda: receiver.exports > 0)
    receiver.manner = Manner.GOOD
    run_id = (await server.accept()).run_id
    await receiver.until(lambda: any(span.attributes["laneway.run_id"] == run_id for span in receiver.spans))
