"""Cases of group g: child processes, their output and environment, batches with failing tools. Approvals, and being
process 1 of a container: pending.md."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cases.case_files import case
from tests.cases.observing import check_conversations, check_idle, observe, results_sent
from tests.cases.processes_seen import living, new_mark, peak_memory_bytes, zombies_of
from tests.fakes.model_answers import Answer, calls_answer, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.server_process import ServerProcess
from tests.fakes.service import RunningService, running_service, toml_for

from laneway.v1 import agent_pb2, event_pb2, run_pb2
from lanewayd.tools.interface import ToolResult


async def update_seen(service: RunningService, run_id: str, is_enough: Callable[[str], bool]) -> None:
    """Return when the output of a running tool, as far as watchers are told, is enough."""
    request = agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0, verbose=agent_pb2.VERBOSITY_FULL)
    call = service.agent.Subscribe(request)
    async for event in call:
        if event.tool.phase == event_pb2.TOOL_PHASE_UPDATE and is_enough(event.tool.result.text):
            break
    call.cancel()


@pytest.mark.parametrize("cause", ["timeout", "abort", "shutdown"])
async def test_b_067_nothing_that_a_command_started_outlives_it(tmp_path: Path, model: ModelServer, cause: str) -> None:
    """The sleeps carry marks instead of the case's 300 and 301. Grace: 2 s from TERM to KILL."""
    first, second = new_mark(), new_mark()
    command = f"sh -c 'sleep {first} & echo $!; (trap \"\" TERM; sleep {second}) & echo both; wait'"
    home = tmp_path / "home"
    group = os.getpgrp()
    loop = asyncio.get_running_loop()
    async with running_service(home, model=model) as service:
        timeout_s = 1 if cause == "timeout" else 0
        model.answer(calls_answer(("exec", {"command": command, "timeoutSeconds": timeout_s})))
        run_id = (await service.accept("go", session_key="s")).run_id
        await update_seen(service, run_id, lambda text: "both" in text)
        if cause != "timeout":
            assert len(living(first)) >= 1
            assert len(living(second)) >= 1
        began_s = loop.time()
        if cause == "abort":
            receipt = await service.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))
            assert list(receipt.aborted_run_ids) == [run_id]
        elif cause == "shutdown":
            service.service.request_drain()
            service.service.request_drain()
            await service.finished
        if cause != "shutdown":
            observed = await observe(service, run_id)
            assert (
                observed.run.state
                == {
                    "timeout": run_pb2.RUN_STATE_SUCCEEDED,
                    "abort": run_pb2.RUN_STATE_CANCELLED,
                }[cause]
            )
            text = observed.tool_results[0].content[0].text
            assert "both" in text
            assert {"timeout": "timed out after 1 s", "abort": "aborted"}[cause] in text
        took_s = loop.time() - began_s
        assert living(first) == living(second) == []
        assert zombies_of(os.getpid()) == []
        assert os.getpgrp() == group
        # Less what the case's second of timeout takes: the grace and a second.
        assert took_s < 2 + 1 + timeout_s


@pytest.mark.parametrize("background", ["sleep {mark} &", "setsid sleep {mark} &"])
async def test_b_068_a_background_child_does_not_hold_the_result(
    service: RunningService, model: ModelServer, background: str
) -> None:
    """What is left over is ended with the call, and the result says so."""
    mark = new_mark()
    model.answer(calls_answer(("exec", {"command": f"echo done; {background.format(mark=mark)}"})))
    observed = await observe(service, (await service.accept("go", session_key="s")).run_id)
    (result,) = observed.tools(event_pb2.TOOL_PHASE_RESULT)
    assert result.outcome == event_pb2.TOOL_OUTCOME_OK
    assert not result.is_error
    assert result.result.text.startswith("done\n")
    assert "1 background processes were ended" in result.result.text
    assert result.duration.ToMilliseconds() < 1500
    assert living(mark) == []


FLOOD = """
import os, threading
def write(descriptor, letter, count):
    for _ in range(count):
        os.write(descriptor, letter * 65536)
streams = ((1, b"o"), (2, b"e"))
threads = [threading.Thread(target=write, args=(*stream, COUNT)) for stream in streams]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
os._exit(3)
"""


async def test_b_069_a_flood_of_output_is_capped_and_costs_no_memory(
    service: RunningService, model: ModelServer
) -> None:
    """24 MiB on each stream; the case has 100 MiB. More than the 32 MiB that memory may grow."""
    workspace = service.home / "workspaces" / "main"
    workspace.mkdir(parents=True)
    (workspace / "flood.py").write_text(FLOOD.replace("COUNT", "384"))
    await service.finish("first")
    before = peak_memory_bytes(restart=True)
    model.answer(calls_answer(("exec", {"command": "python3 flood.py"})), model="flood")
    flooding = await service.accept("go", session_key="s", model="mock/flood")
    await update_seen(service, flooding.run_id, bool)
    # Another run streams to its end while the flood goes on.
    other = await observe(service, (await service.accept("other")).run_id)
    observed = await observe(service, flooding.run_id)
    assert peak_memory_bytes() - before < 32 * 1024 * 1024
    assert other.run.state == run_pb2.RUN_STATE_SUCCEEDED
    result = observed.tools(event_pb2.TOOL_PHASE_RESULT)[0]
    assert result.is_error
    stored = observed.tool_results[0].content[0].text
    assert stored.endswith("[exit code 3]")
    assert "characters left out" in stored
    assert len(stored) <= 16_000
    assert {"o", "e"} <= set(stored[:8000]) | set(stored[-4000:])


async def test_b_069_the_last_bytes_count_and_binary_output_is_named(
    service: RunningService, model: ModelServer
) -> None:
    model.answer(
        calls_answer(
            ("exec", {"command": "printf 'no newline at end'"}), ("exec", {"command": "head -c 1000000 /dev/urandom"})
        )
    )
    observed = await observe(service, (await service.accept("go", session_key="s")).run_id)
    plain, binary = (result.content[0].text for result in observed.tool_results)
    assert plain == "no newline at end"
    assert binary.startswith("[binary output, 1000000 bytes;")
    assert len(binary) <= 16_000
    assert [content for _, content in results_sent(model.requests[-1])] == [plain, binary]


@pytest.fixture
async def server(tmp_path: Path, model: ModelServer) -> AsyncGenerator[ServerProcess, None]:
    """A real server process, not started."""
    process = ServerProcess(tmp_path, toml=toml_for(model))
    yield process
    await process.close()


async def test_b_071_a_command_sees_no_secret_of_the_service(server: ServerProcess, model: ModelServer) -> None:
    """Also not through /proc, which shows the environment that the server was started with."""
    canaries: dict[str, str] = case("B-071").input["env"]
    server.variables = {**canaries, "LANG": "C.UTF-8", "LC_TIME": "C", "EDITOR": "hidden"}
    server.toml += '[models.providers.openai]\nbase_url = "http://127.0.0.1:9/v1"\n'
    await server.start()
    overrides = {"LD_PRELOAD": "/x.so", "PATH": "/x", "PYTHONPATH": "/x", "MINE": "given"}
    commands: list[dict[str, Any]] = [
        {"command": "env"},
        {"command": "python3 -c 'import os; print(dict(os.environ))'"},
        {"command": "cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/$PPID/environ | tr '\\0' '\\n'; true"},
        {"command": "env", "env": overrides},
    ]
    model.answer(calls_answer(*(("exec", arguments) for arguments in commands)))
    run_id = (await server.accept("go", session_key="s")).run_id
    assert (await server.wait(run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    events = await server.events(run_id)
    outputs = [content for _, content in results_sent(model.requests[-1])]
    seen = [str(events), model.requests[-1].body.decode(), server.log, *outputs]
    assert not [canary for canary in canaries.values() for text in seen if canary in text]
    assert "canary" not in "".join(seen)

    plain = dict(line.split("=", 1) for line in outputs[0].splitlines() if "=" in line)
    assert plain["HOME"] == str(server.home)
    assert plain["LANG"] == "C.UTF-8"
    assert plain["LC_TIME"] == "C"
    assert plain["PATH"] == os.environ["PATH"]
    assert plain["LANEWAY_RUN_ID"] == run_id
    assert not {"EDITOR", *canaries} & set(plain)
    assert "MINE=given" in outputs[3]
    assert "/x" not in outputs[3].split("[not set")[0]
    assert "[not set, because exec does not accept them: LD_PRELOAD, PATH, PYTHONPATH]" in outputs[3]


async def test_b_072_a_failing_tool_harms_no_other(tmp_path: Path, model: ModelServer) -> None:
    """The tools that take time end when the test lets them: t6 first, so that the order of results is not theirs."""
    tools = [
        RecordingTool("t1", hold=True),
        RecordingTool("t2", result=ValueError("no good")),
        RecordingTool("t3", result=asyncio.CancelledError()),
        RecordingTool("t4", result=None),
        RecordingTool("t5", result=SystemExit(3)),
        RecordingTool("t6", hold=True),
    ]
    async with running_service(tmp_path / "home", model=model, tools=tools) as service:
        model.answer(calls_answer(*((f"t{number}", {}) for number in range(1, 7))))
        run_id = (await service.accept("go", session_key="s")).run_id
        one, six = await tools[0].asked.get(), await tools[5].asked.get()
        await results_seen(service, run_id, 4)
        six.answer.set_result(ToolResult("six"))
        await results_seen(service, run_id, 5)
        one.answer.set_result(ToolResult("one"))
        observed = await observe(service, run_id)
        assert observed.run.state == run_pb2.RUN_STATE_SUCCEEDED
        results = [(result.name, result.content[0].text, result.is_error) for result in observed.tool_results]
        assert results == [
            ("t1", "one", False),
            ("t2", "ValueError: no good", True),
            ("t3", "the tool cancelled itself", True),
            ("t4", "(no output)", False),
            ("t5", "the tool tried to end the process (SystemExit)", True),
            ("t6", "six", False),
        ]
        assert [content for _, content in results_sent(model.requests[-1])] == [text for _, text, _ in results]
        await check_idle(service)

        # A real abort cancels all that run.
        model.answer(calls_answer(("t1", {}), ("t6", {})))
        run_id = (await service.accept("go", session_key="s")).run_id
        held = [await tools[0].asked.get(), await tools[5].asked.get()]
        await service.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))
        aborted = await observe(service, run_id)
        assert aborted.run.state == run_pb2.RUN_STATE_CANCELLED
        assert tools[0].cancelled == [held[0].context.call_id]
        assert tools[5].cancelled == [held[1].context.call_id]
        assert {result.outcome for result in aborted.tool_results} == {event_pb2.TOOL_OUTCOME_ABORTED}
        check_conversations(model)


async def results_seen(service: RunningService, run_id: str, count: int) -> None:
    """Return when this many calls have ended."""
    call = service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0))
    async for event in call:
        count -= event.tool.phase == event_pb2.TOOL_PHASE_RESULT
        if count == 0:
            break
    call.cancel()


async def test_b_082_child_processes_start_beside_active_streams(server: ServerProcess, model: ModelServer) -> None:
    """50 streams and 200 commands, half of them with a process group of their own and another folder; the case has
    2,000."""
    mark = new_mark()
    server.toml += "\n[agents.defaults]\nmax_concurrent = 80\n"
    await server.start()
    release = asyncio.Event()
    streaming = Answer([text_answer("begun ").steps[0], release, *text_answer("ended").steps])
    model.answer(*([streaming] * 50), model="stream")
    streams = [await server.accept("go", model="mock/stream") for _ in range(50)]
    watching = [asyncio.ensure_future(server.events(run.run_id)) for run in streams]
    await model.received(50)

    plain = {"command": "echo out"}
    grouped = {"command": f"setsid --wait sh -c 'pwd; : {mark}'", "workdir": "/"}
    rounds = [calls_answer(*([("exec", plain), ("exec", grouped)] * 10)) for _ in range(10)]
    model.answer(*rounds)
    calling = (await server.accept("go", session_key="s")).run_id
    assert (await server.wait(calling)).state == run_pb2.RUN_STATE_SUCCEEDED
    results = [content for request in model.requests[-1:] for _, content in results_sent(request)]
    assert results == ["out\n", "/\n"] * 100
    release.set()
    for watched in watching:
        events = await watched
        assert "".join(event.assistant.delta for event in events) == "begun ended"
        assert events[-1].lifecycle.state == run_pb2.RUN_STATE_SUCCEEDED
    assert living(mark) == []
    assert zombies_of(server.pid) == []
    lines = server.log.splitlines()
    assert not [line for line in lines if "fork" in line.lower()]
    assert all(json.loads(line) for line in lines)
