"""The commands against the real server, each as a process of its own."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from tests.unit.cli.processes import end, run, start
from tests.unit.cli.real_servers import readable, serving

from laneway.cli.connection import Connection


async def test_agent_starts_a_server_that_the_next_command_finds(home: Path, environ: dict[str, str]) -> None:
    first = await run("agent", "hi", "--model", "scripted/hello", environ=environ)
    assert first.code == 0
    assert f"[no server was running: starting one on unix:{home}/run/laneway.sock]" in first.out
    assert "You said hi" in first.out
    second = await run("agent", "again", "--model", "scripted/hello", "--json", environ=environ)
    events = [json.loads(line) for line in second.out.splitlines()]
    assert second.err == ""
    waited = await run("wait", events[0]["run_id"], environ=environ)
    assert (waited.code, waited.out) == (0, "You said again\n")
    status = await run("status", "--json", environ=environ)
    assert json.loads(status.out)["runs_by_state"] == {"RUN_STATE_SUCCEEDED": "2"}


async def test_a_command_in_a_message_is_shown_with_its_answer_and_ends_well(environ: dict[str, str]) -> None:
    told = ("agent", "/queue collect debounce:2s", "--session", "s", "--idempotency-key", "k")
    first = await run(*told, environ=environ)
    assert (first.code, first.err) == (0, "")
    *_, reply = first.out.splitlines()
    assert "collect" in reply
    assert "2" in reply
    again = await run(*told, environ=environ)
    assert (again.code, again.out) == (0, f"{reply}\n")
    as_json = await run(*told, "--json", environ=environ)
    (line,) = as_json.out.splitlines()
    accepted = json.loads(line)["accepted"]
    assert (accepted["disposition"], accepted["reply"]) == ("DISPOSITION_COMPLETED", reply)
    status = await run("status", "--json", environ=environ)
    assert json.loads(status.out).get("runs_by_state", {}) == {}


async def test_of_two_commands_at_once_one_starts_the_server_and_both_use_it(environ: dict[str, str]) -> None:
    both = await asyncio.gather(*(run("agent", "hi", "--model", "scripted/hello", environ=environ) for _ in range(2)))
    assert [ended.code for ended in both] == [0, 0]
    status = await run("status", "--json", environ=environ)
    assert json.loads(status.out)["runs_by_state"] == {"RUN_STATE_SUCCEEDED": "2"}


async def test_a_killed_server_is_started_again_and_the_run_is_shown_to_its_end(
    home: Path, environ: dict[str, str]
) -> None:
    process = await start("agent", "hi", "--model", "scripted/slow", environ=environ)
    assert process.stdout is not None
    before = (await process.stdout.readuntil(b"Once")).decode()
    pidfd = os.pidfd_open(json.loads((home / "server.json").read_text())["pid"])
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    await readable(pidfd)
    ended = await end(process)
    assert ended.code == 0
    assert "[connection lost, trying again]" in ended.out
    assert "! the server was restarted and goes on with this run\n  void, comes again: ~~Once" in ended.out
    assert "\nOnce upon a time\n= succeeded" in ended.out
    assert before.count("starting one") + ended.out.count("starting one") == 2


async def test_ctrl_c_cancels_the_run_on_the_server(environ: dict[str, str]) -> None:
    process = await start("agent", "hi", "--model", "scripted/endless", "--session", "s", environ=environ)
    assert process.stdout is not None
    await process.stdout.readuntil(b"tick")
    process.send_signal(signal.SIGINT)
    ended = await end(process)
    assert ended.code == 3
    assert "= cancelled | rpc" in ended.out
    nothing = await run("abort", "--session", "s", environ=environ)
    assert (nothing.code, nothing.out) == (0, "nothing to abort\n")


async def test_a_run_that_the_command_left_can_be_aborted_by_its_id(environ: dict[str, str]) -> None:
    process = await start("agent", "hi", "--model", "scripted/endless", "--json", environ=environ)
    assert process.stdout is not None
    run_id = json.loads(await process.stdout.readline())["run_id"]
    process.kill()
    await process.wait()
    expired = await run("wait", run_id, "--timeout", "0", environ=environ)
    assert expired.code == 3
    aborted = await run("abort", run_id, environ=environ)
    assert (aborted.code, aborted.out) == (0, f"{run_id} aborted\n")
    waited = await run("wait", run_id, "--json", environ=environ)
    assert (waited.code, json.loads(waited.out)["stop_reason"]) == (3, "rpc")


async def test_a_run_deadline_ends_the_command_with_3(environ: dict[str, str]) -> None:
    ended = await run("agent", "hi", "--model", "scripted/endless", "--timeout", "0.3", environ=environ)
    assert ended.code == 3
    assert "RUN_DEADLINE" in ended.out


async def test_without_a_model_the_message_names_what_to_set(environ: dict[str, str]) -> None:
    ended = await run("agent", "hi", environ=environ | {"LANEWAY_MODELS__LOCAL__ENABLED": "false"})
    assert ended.code == 2
    assert "OPENAI_API_KEY" in ended.err
    assert "MODEL_NOT_CONFIGURED" in ended.err


async def test_a_server_that_cannot_start_is_explained(home: Path, environ: dict[str, str]) -> None:
    (home / "laneway.toml").write_text("[drain]\ntimout_s = 1\n")
    ended = await run("agent", "hi", environ=environ)
    assert ended.code == 4
    assert "unknown setting `drain.timout_s`" in ended.err


@pytest.mark.parametrize("module", ["", "lanewayd"])
async def test_a_server_leaves_with_0_when_it_is_told_to(environ: dict[str, str], address: str, module: str) -> None:
    process = await serving(address, environ=environ, module=module)
    process.send_signal(signal.SIGTERM)
    assert (await end(process)).code == 0
    process = await serving(address, environ=environ, module=module)
    async with Connection(address, {}) as connection:
        await connection.client.drain()
    assert (await end(process)).code == 0


async def test_a_server_leaves_when_nobody_needs_it(environ: dict[str, str], address: str) -> None:
    process = await serving(address, "--idle-exit", "0.2", environ=environ)
    assert (await end(process)).code == 0


async def test_flags_reach_the_settings(environ: dict[str, str], home: Path, address: str) -> None:
    config = home / "other.toml"
    config.write_text("[limits]\nmax_message_bytes = 3\n[lanes.one]\nmax_concurrent = 7\n")
    process = await serving(address, "--config", str(config), "--set", "lanes.two.max_concurrent=9", environ=environ)
    status = json.loads((await run("status", "--json", "--address", address)).out)
    refused = await run("agent", "four", "--model", "scripted/hello", "--address", address)
    process.send_signal(signal.SIGTERM)
    assert (await end(process)).code == 0
    widths = {lane["name"]: lane["width"] for lane in status["lanes"]}
    assert (widths["one"], widths["two"]) == (7, 9)
    assert refused.code == 2
    assert "MESSAGE_TOO_LONG" in refused.err


async def test_a_second_server_on_a_home_is_refused_and_names_the_first(
    environ: dict[str, str], home: Path, address: str
) -> None:
    process = await serving(address, environ=environ)
    refused = await run("serve", "--listen", f"unix:{home}/other.sock", environ=environ)
    process.send_signal(signal.SIGTERM)
    await end(process)
    assert refused.code == 2
    assert f"pid {process.pid}" in refused.err


async def test_a_wrong_flag_is_refused_with_2(environ: dict[str, str]) -> None:
    ended = await run("serve", "--listen", "0.0.0.0:50551", environ=environ)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("laneway: refusing to listen on 0.0.0.0:50551")


async def test_a_message_is_sent_once_whatever_its_answer(environ: dict[str, str], address: str) -> None:
    process = await serving(address, environ=environ)
    arguments = ["agent", "hi", "--model", "scripted/hello", "--idempotency-key", "k", "--address", address]
    first, second = await run(*arguments), await run(*arguments)
    async with Connection(address, {}) as connection:
        runs = [run async for run in connection.client.list_runs()]
    process.send_signal(signal.SIGTERM)
    await end(process)
    assert len(runs) == 1
    assert "You said hi" in first.out
    assert first.out.replace("\n", ", sent before\n", 1) == second.out
