import grpc
import pytest
from tests.unit.cli.fake_service import FakeService, refusal

from laneway.cli.connection import Connection
from laneway.cli.exits import CliError, ExitCode, call_failed, exit_code_of
from laneway.errors import LanewayError
from laneway.v1 import run_pb2


async def failure_of(service: FakeService, address: str, status: grpc.Status) -> LanewayError:
    service.abort_refusals.append(status)
    async with Connection(address, {}) as connection:
        with pytest.raises(LanewayError) as caught:
            await connection.client.abort_session("s")
    return caught.value


@pytest.mark.parametrize(
    ("code", "reason", "exit_code"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, "MESSAGE_EMPTY", ExitCode.USAGE),
        (grpc.StatusCode.NOT_FOUND, "AGENT_NOT_FOUND", ExitCode.USAGE),
        (grpc.StatusCode.FAILED_PRECONDITION, "MODEL_NOT_CONFIGURED", ExitCode.USAGE),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL", ExitCode.RUN_FAILED),
        (grpc.StatusCode.OUT_OF_RANGE, "CURSOR_PRUNED", ExitCode.RUN_FAILED),
        (grpc.StatusCode.UNAVAILABLE, "DRAINING", ExitCode.NO_SERVER),
    ],
)
async def test_a_refusal_keeps_reason_and_text(
    service: FakeService, address: str, code: grpc.StatusCode, reason: str, exit_code: ExitCode
) -> None:
    error = await failure_of(service, address, refusal(code, reason, "what happened"))
    shown = call_failed(error)
    assert str(shown).startswith(f"what happened ({reason})")
    assert shown.exit_code is exit_code


async def test_a_refusal_with_known_advice_gives_it(service: FakeService, address: str) -> None:
    error = await failure_of(service, address, refusal(grpc.StatusCode.UNAVAILABLE, "DRAINING", "leaving"))
    assert "try again when it is back" in str(call_failed(error))


async def test_a_server_without_the_service_is_named_as_such(address: str) -> None:
    server = grpc.aio.server()
    server.add_insecure_port(address)
    await server.start()
    async with Connection(address, {}) as connection:
        with pytest.raises(LanewayError) as caught:
            await connection.client.agent("hi")
    await server.stop(0)
    assert "older than this command or no Laneway server" in str(call_failed(caught.value))


def test_the_state_of_a_run_decides_the_exit_code() -> None:
    expected = {
        run_pb2.RUN_STATE_SUCCEEDED: 0,
        run_pb2.RUN_STATE_FAILED: 1,
        run_pb2.RUN_STATE_CANCELLED: 3,
        run_pb2.RUN_STATE_TIMED_OUT: 3,
    }
    assert {state: int(exit_code_of(state)) for state in expected} == expected


async def test_no_server_is_an_error_that_says_what_to_do(address: str) -> None:
    with pytest.raises(CliError, match=r"laneway\.sock: start one with `laneway serve`") as caught:
        await Connection(address, {}).__aenter__()
    assert caught.value.exit_code is ExitCode.NO_SERVER
