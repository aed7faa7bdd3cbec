"""The TypeScript client against real servers: every call, the example, kills, drains, late answers."""

import asyncio
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2
from tests.fakes.commit_gates import HoldingGate
from tests.fakes.model_answers import Answer, delta, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.server_process import ServerProcess
from tests.fakes.service import RunningService, running_service
from tests.typescript.conftest import CLIENT, INSTALL_S, Program

from laneway.v1 import agent_pb2, run_pb2
from lanewayd.app import Seams
from lanewayd.store.interface import AcceptRun

pytestmark = pytest.mark.timeout(INSTALL_S + 60)

Start = Callable[..., Any]


async def run_ids(server: RunningService | ServerProcess) -> list[str]:
    listed = await server.agent.ListRuns(agent_pb2.ListRunsRequest())
    return [run.run_id for run in listed.runs]


async def lines_until(program: Program, key: str) -> list[dict[str, Any]]:
    """All lines up to the first one that has `key`."""
    lines = [await program.json()]
    while key not in lines[-1]:
        lines.append(await program.json())
    return lines


async def test_every_call_and_every_refusal(start: Start, service: RunningService) -> None:
    program = await start("test/live/calls.test", address=service.target)
    output, exit_code = await program.rest()
    assert exit_code == 0, output
    assert re.search(r"pass 10$", output, re.MULTILINE), output


async def test_the_example_does_what_the_readme_shows(start: Start, tmp_path: Path, model: ModelServer) -> None:
    readme = (CLIENT / "README.md").read_text()
    command, shown = re.findall(r"```sh\nnode dist/(.*?)\n```\n+```text\n(.*?)```", readme, re.DOTALL)[0]
    program_name, *messages = re.findall(r'"([^"]*)"|(\S+)', command)
    model.answer(text_answer("Two ", "files."), text_answer("You are welcome."))
    toml = '[agents.defaults]\nmodel = "mock/any"\n'
    async with running_service(tmp_path / "home", model=model, toml=toml) as service:
        name = program_name[1].removesuffix(".js")
        program = await start(name, *(quoted for quoted, _ in messages), address=service.target)
        output, exit_code = await program.rest()
    assert re.fullmatch(re.escape(shown).replace(r"run_\.\.\.", "run_[0-9a-f-]{36}"), output)
    assert exit_code == 0
    asked = [message["content"] for message in model.requests[-1].messages if message["role"] == "user"]
    assert [str(quoted) in str(content) for (quoted, _), content in zip(messages, asked, strict=True)] == [True, True]


async def test_ctrl_c_aborts_the_run_of_the_example(start: Start, tmp_path: Path, model: ModelServer) -> None:
    model.answer(Answer([delta(content="Two"), asyncio.Event()]))
    toml = '[agents.defaults]\nmodel = "mock/any"\n'
    async with running_service(tmp_path / "home", model=model, toml=toml) as service:
        program = await start("examples/chat", "hello", address=service.target)
        run_id = (await program.line()).removeprefix("run ")
        await model.received(1)
        program.signal(signal.SIGINT)
        output, exit_code = await program.rest()
        assert (await service.wait(run_id)).state == run_pb2.RUN_STATE_CANCELLED
    assert output.endswith("\nended: rpc\n")
    assert exit_code == 0


async def test_a_killed_server_loses_and_repeats_no_event(
    start: Start, server: ServerProcess, model: ModelServer
) -> None:
    pieces = [f"{number} " for number in range(20)]
    held = Answer([*(delta(content=piece) for piece in pieces), asyncio.Event()])
    model.answer(text_answer("before"), held, text_answer(*pieces, "and done"))
    await server.start()
    before = await server.accept()
    cursor = (await server.events(before.run_id))[-1].cursor
    accepted = await server.accept(session_key="followed")
    program = await start("test/live/follow", accepted.run_id, accepted.session_key, cursor, address=server.target)
    seen: dict[str, list[int]] = {"run": [], "session": [], "all": []}
    losses = []

    async def read_until(enough: Callable[[], bool]) -> None:
        while not enough():
            line = await program.json()
            if "loss" in line:
                losses.append(line["loss"])
            else:
                seen[line["name"]].append(line["seq"])

    # All three are in the middle of the run, behind at least half of what the model has said.
    await read_until(lambda: min(map(len, seen.values())) > len(pieces) / 2)
    assert losses == []
    await server.kill()
    await read_until(lambda: len(losses) >= 3)
    await server.start()
    log = await server.events(accepted.run_id)
    await read_until(lambda: min(map(len, seen.values())) >= len(log))
    output, exit_code = await program.rest()
    assert (exit_code, [line for line in output.splitlines() if '"loss"' not in line]) == (0, [])
    assert seen == {name: list(range(1, len(log) + 1)) for name in seen}
    assert set(losses) == {"UnavailableError"}


async def test_a_message_waits_for_a_server_that_is_not_up_yet(
    start: Start, server: ServerProcess, model: ModelServer
) -> None:
    program = await start("test/live/accept", "hello", address=server.target)
    assert (await program.json())["loss"] == "UnavailableError"
    await server.start()
    accepted = (await lines_until(program, "accepted"))[-1]
    assert await program.json() == {"state": "SUCCEEDED", "text": "ok"}
    assert await run_ids(server) == [accepted["accepted"]]


async def test_a_message_goes_to_the_server_after_the_one_that_leaves(
    start: Start, server: ServerProcess, model: ModelServer
) -> None:
    held = text_answer("held")
    held.before = asyncio.Event()
    model.answer(held)
    await server.start()
    first = await server.accept()
    await model.received(1)
    server.terminate()
    await server.reaches(health_pb2.HealthCheckResponse.NOT_SERVING)
    program = await start("test/live/accept", "hello", address=server.target)
    line = await program.json()
    assert line["loss"] == "DRAINING"
    assert line["pauseMs"] >= line["retryAfterMs"] > 0
    held.before.set()
    assert await server.exited() == 0
    await server.start()
    accepted = (await lines_until(program, "accepted"))[-1]
    assert await program.json() == {"state": "SUCCEEDED", "text": "ok"}
    assert await run_ids(server) == [accepted["accepted"], first.run_id]


async def test_a_message_whose_answer_is_late_is_one_run(start: Start, tmp_path: Path, model: ModelServer) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AcceptRun))
    async with running_service(tmp_path / "home", model=model, seams=Seams(commit_gate=gate)) as service:
        program = await start("test/live/accept", "hello", "300", address=service.target)
        await gate.reached()
        assert (await program.json())["loss"] == "DeadlineExceededError"
        gate.release()
        accepted = (await lines_until(program, "accepted"))[-1]
        assert accepted["duplicate"]
        assert await program.json() == {"state": "SUCCEEDED", "text": "ok"}
        assert await run_ids(service) == [accepted["accepted"]]
