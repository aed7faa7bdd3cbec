"""Each command as a process against a service on a real socket."""

import json
import signal
from importlib import metadata
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.unit.cli.fake_service import RUN_ID, FakeService, message, refusal, terminal, text, usual_run
from tests.unit.cli.processes import end, run, start

from laneway.cli.commands import app
from laneway.cli.exits import CliError
from laneway.cli.text import json_line
from laneway.v1 import agent_pb2, run_pb2


async def test_the_version_is_told_without_a_server() -> None:
    ended = await run("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"laneway {metadata.version('laneway')}\n", "")


async def test_agent_shows_the_run_and_succeeds(service: FakeService, address: str) -> None:
    ended = await run("agent", "hello", "--address", address)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("run run_1 in session agent:main:demo\nLet me look.\n> read path=notes.txt\n< read ok")
    assert ended.out.endswith("= succeeded | stop | 20 tokens in, 7 out\n")


async def test_agent_sends_what_its_options_say(service: FakeService, home: Path) -> None:
    arguments = ["--session", "s", "--agent", "a", "--model", "scripted/x", "--timeout", "2m", "--system", "be brief"]
    arguments += ["--thinking", "low"]
    environ = {"LANEWAY_HOME": str(home), "LANEWAY_RUN_ID": "run_parent"}
    ended = await run("agent", "-", *arguments, "--idempotency-key", "k", environ=environ, stdin="from stdin")
    assert ended.code == 0
    (request,) = service.agent_requests
    expected = agent_pb2.AgentRequest(
        message="from stdin",
        session_key="s",
        agent_id="a",
        model="scripted/x",
        thinking=agent_pb2.THINKING_LEVEL_LOW,
        extra_system_prompt="be brief",
        idempotency_key="k",
        parent_run_id="run_parent",
    )
    expected.timeout.seconds = 120
    assert request == expected


async def test_agent_makes_a_key_of_its_own_for_each_call(service: FakeService, address: str) -> None:
    for _ in range(2):
        await run("agent", "hello", "--address", address)
    first, second = service.agent_requests
    assert first.idempotency_key != second.idempotency_key
    assert first.idempotency_key.startswith("cli-")
    assert not first.HasField("timeout")


async def test_agent_goes_on_after_a_lost_connection(service: FakeService, address: str) -> None:
    service.cuts = [3]
    ended = await run("agent", "hello", "--address", address)
    assert ended.code == 0
    assert ended.out.count("Let me look.") == 1
    assert "[connection lost, trying again]" in ended.out


async def test_agent_json_is_one_event_per_line(service: FakeService, address: str) -> None:
    ended = await run("agent", "hello", "--address", address, "--json")
    accepted, *events = ended.out.splitlines()
    assert json.loads(accepted)["accepted"]["run_id"] == RUN_ID
    assert events == [json_line(event) for event in usual_run()]


@pytest.mark.parametrize(
    ("state", "code"),
    [(run_pb2.RUN_STATE_FAILED, 1), (run_pb2.RUN_STATE_CANCELLED, 3), (run_pb2.RUN_STATE_TIMED_OUT, 3)],
)
async def test_agent_tells_the_end_by_its_exit_code(
    service: FakeService, address: str, state: run_pb2.RunState, code: int
) -> None:
    service.events = [terminal(1, state)]
    assert (await run("agent", "hello", "--address", address)).code == code


async def test_agent_says_why_a_message_was_refused(service: FakeService, address: str) -> None:
    service.agent_refusals = [refusal(grpc.StatusCode.FAILED_PRECONDITION, "MODEL_NOT_CONFIGURED", "set A_KEY")]
    ended = await run("agent", "hello", "--address", address)
    assert (ended.code, ended.err) == (2, "laneway: set A_KEY (MODEL_NOT_CONFIGURED)\n")


async def test_ctrl_c_aborts_the_run_and_shows_its_end(service: FakeService, address: str) -> None:
    service.events = [text(1, "Once upon"), message(2, "Once upon"), terminal(3, run_pb2.RUN_STATE_CANCELLED)]
    service.holds_before = 2
    service.on_abort = service.go_on.set
    process = await start("agent", "hello", "--address", address)
    assert process.stdout is not None
    await process.stdout.readuntil(b"Once upon")
    process.send_signal(signal.SIGINT)
    ended = await end(process)
    assert ended.code == 3
    assert [request.run_id for request in service.abort_requests] == [RUN_ID]
    assert ended.out == "\n[aborting the run; Ctrl-C again leaves it to the server]\n= cancelled\n"


async def test_a_second_ctrl_c_leaves_the_run_to_the_server(service: FakeService, address: str) -> None:
    service.holds_before = 2
    process = await start("agent", "hello", "--address", address)
    await service.is_held.wait()
    process.send_signal(signal.SIGINT)
    await service.aborted.wait()
    process.send_signal(signal.SIGINT)
    ended = await end(process)
    assert ended.code == 3
    assert "laneway wait run_1" in ended.out


async def test_an_abort_that_is_refused_is_told(service: FakeService, address: str) -> None:
    service.events = [text(1, "a"), terminal(2)]
    service.holds_before = 2
    service.abort_refusals = [refusal(grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND", "no such run")]
    process = await start("agent", "hello", "--address", address)
    await service.is_held.wait()
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    seen = (await process.stdout.readuntil(b"could not be aborted")).decode()
    service.go_on.set()
    ended = await end(process)
    assert ended.code == 0
    assert "[aborting the run" in seen


def waited(state: run_pb2.RunState, **fields: Any) -> agent_pb2.WaitResponse:
    answer = agent_pb2.WaitResponse(run_id=RUN_ID, state=state, **fields)
    if state not in (run_pb2.RUN_STATE_RUNNING, run_pb2.RUN_STATE_QUEUED):
        answer.ended_at.seconds = 5
    return answer


async def test_wait_prints_the_answer_alone_on_stdout(service: FakeService, address: str) -> None:
    answer = waited(run_pb2.RUN_STATE_SUCCEEDED, usage=run_pb2.Usage(input_tokens=1, output_tokens=2))
    answer.payloads.add(text="The answer")
    service.wait_answers = [answer]
    ended = await run("wait", RUN_ID, "--address", address)
    assert (ended.code, ended.out) == (0, "The answer\n")
    assert ended.err == "run_1 succeeded | 1 tokens in, 2 out\n"
    assert service.wait_requests[0].timeout.seconds == 60


async def test_wait_goes_on_until_the_run_has_ended(service: FakeService, address: str) -> None:
    running = waited(run_pb2.RUN_STATE_RUNNING, timeout_kind=agent_pb2.TIMEOUT_KIND_WAIT_EXPIRED)
    service.wait_answers = [running, running, waited(run_pb2.RUN_STATE_CANCELLED)]
    assert (await run("wait", RUN_ID, "--address", address)).code == 3
    assert len(service.wait_requests) == 3


async def test_wait_with_a_timeout_tells_that_the_run_goes_on(service: FakeService, address: str) -> None:
    service.wait_answers = [waited(run_pb2.RUN_STATE_RUNNING)]
    ended = await run("wait", RUN_ID, "--address", address, "--timeout", "0")
    assert (ended.code, ended.out, ended.err) == (3, "", "run_1 running, not ended\n")
    assert service.wait_requests[0].HasField("timeout")
    assert service.wait_requests[0].timeout.seconds == 0


async def test_wait_of_a_failed_run_says_why(service: FakeService, address: str) -> None:
    error = run_pb2.RunError(reason="MAX_TURNS", message="10 turns")
    service.wait_answers = [waited(run_pb2.RUN_STATE_FAILED, error=error)]
    ended = await run("wait", RUN_ID, "--address", address)
    assert ended.code == 1
    assert "MAX_TURNS: 10 turns" in ended.err


async def test_wait_json_is_the_answer(service: FakeService, address: str) -> None:
    service.wait_answers = [waited(run_pb2.RUN_STATE_SUCCEEDED)]
    ended = await run("wait", RUN_ID, "--address", address, "--json")
    assert json.loads(ended.out)["state"] == "RUN_STATE_SUCCEEDED"
    assert json.loads(ended.out)["error_pending"] is False


async def test_abort_of_a_run_and_of_a_session(service: FakeService, address: str) -> None:
    ended = await run("abort", RUN_ID, "--reason", "enough", "--address", address)
    assert (ended.code, ended.out) == (0, "run_1 aborted\n")
    ended = await run("abort", "--session", "s", "--clear-queued", "--json", "--address", address)
    assert json.loads(ended.out)["aborted_run_ids"] == [RUN_ID]
    assert service.abort_requests == [
        agent_pb2.AbortRequest(run_id=RUN_ID, reason="enough"),
        agent_pb2.AbortRequest(session_key="s", clear_queued=True),
    ]


async def test_abort_of_an_unknown_run_gives_advice(service: FakeService, address: str) -> None:
    service.abort_refusals = [refusal(grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND", "there is no run run_x")]
    ended = await run("abort", "run_x", "--address", address)
    assert ended.code == 2
    assert ended.err.startswith("laneway: there is no run run_x (RUN_NOT_FOUND)\n  run ids are printed")


async def test_status_shows_the_server(service: FakeService, address: str) -> None:
    ended = await run("status", "--address", address)
    assert ended.code == 0
    assert f"Laneway 9.9.9 on {address}, serving" in ended.out
    assert "store /home/laneway.db, 3.0 MiB, commits take 1.2 ms" in ended.out
    assert "runs 4 timed out" in ended.out
    assert ended.out.splitlines()[-1].split() == ["main", "2", "8", "1"]


async def test_status_json_is_the_answer(service: FakeService, address: str) -> None:
    ended = await run("status", "--address", address, "--json")
    assert json.loads(ended.out)["runs_by_state"] == {"RUN_STATE_TIMED_OUT": "4"}


@pytest.mark.parametrize("arguments", [["agent", "hello"], ["wait", RUN_ID], ["abort", RUN_ID], ["status"]])
def test_without_a_server_at_the_named_address_commands_end_with_4(home: Path, arguments: list[str]) -> None:
    with pytest.raises(CliError, match="start one with `laneway serve`") as caught:
        app([*arguments, "--address", f"unix:{home}/none.sock"])
    assert caught.value.exit_code == 4


async def test_an_error_ends_the_process_with_its_code_and_one_line(home: Path) -> None:
    ended = await run("status", "--address", f"unix:{home}/none.sock")
    assert (ended.code, ended.out) == (4, "")
    assert ended.err.startswith("laneway: no server listens on unix:")


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["agent"], ["agent", "x", "--timeout", "soon"], ["abort"], ["abort", "r", "--clear-queued"]],
)
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        app(arguments)
    assert caught.value.code == 2
