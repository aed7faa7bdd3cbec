"""`laneway subscribe` as a process: against a service that plays events, and against real servers that die."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.fake_service import RUN_ID, FakeService, terminal, usual_run
from tests.unit.cli.processes import end, run, start
from tests.unit.cli.real_servers import serving
from tests.unit.cli.test_sessions import say

from laneway.cli.commands import app
from laneway.cli.text import json_line
from laneway.v1 import event_pb2, run_pb2


def values(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


async def test_a_run_is_shown_to_its_end_over_a_lost_connection(service: FakeService, address: str) -> None:
    service.cuts = [3]
    ended = await run("subscribe", RUN_ID, "--address", address)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.replace("[connection lost, trying again]\n", "") == (
        "Let me look.\n> read path=notes.txt\n< read ok in 12 ms\n    first line\n    second line\n"
        "It says: first line\n= succeeded | stop | 20 tokens in, 7 out\n"
    )
    first, second = service.subscribe_requests
    assert not first.HasField("after_seq")
    assert second.after_seq == 3


async def test_json_is_one_event_per_line_from_where_the_reader_stands(service: FakeService, address: str) -> None:
    ended = await run("subscribe", RUN_ID, "--after-seq", "4", "--json", "--address", address)
    assert ended.out.splitlines() == [json_line(event) for event in usual_run()[4:]]


async def test_kinds_of_events_are_chosen_by_their_names(service: FakeService, address: str) -> None:
    await run("subscribe", RUN_ID, "--streams", "tool,Message", "--streams", "lifecycle", "--address", address)
    (request,) = service.subscribe_requests
    assert list(request.streams) == [
        event_pb2.STREAM_KIND_TOOL,
        event_pb2.STREAM_KIND_MESSAGE,
        event_pb2.STREAM_KIND_LIFECYCLE,
    ]
    refused = await run("subscribe", RUN_ID, "--streams", "tools", "--address", address)
    assert refused.code == 2
    assert "tool" in refused.err


@pytest.mark.parametrize(
    ("state", "code"),
    [(run_pb2.RUN_STATE_FAILED, 1), (run_pb2.RUN_STATE_CANCELLED, 3), (run_pb2.RUN_STATE_TIMED_OUT, 3)],
)
async def test_the_exit_code_says_how_the_run_ended(
    service: FakeService, address: str, state: run_pb2.RunState, code: int
) -> None:
    service.events = [terminal(1, state)]
    assert (await run("subscribe", RUN_ID, "--address", address)).code == code


async def test_who_leaves_early_is_told_how_to_go_on(service: FakeService, address: str) -> None:
    service.holds_before = 4
    process = await start("subscribe", RUN_ID, "--address", address)
    assert process.stdout is not None
    await process.stdout.readuntil(b"look.")
    process.send_signal(signal.SIGINT)
    ended = await end(process)
    assert ended.code == 3
    assert ended.err == f"\nlaneway: to go on: laneway subscribe {RUN_ID} --after-seq 3\n"
    assert service.abort_requests == []


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["r", "--session", "s"],
        ["r", "--all"],
        ["--session", "s", "--all"],
        ["r", "--cursor", "c"],
        ["--session", "s", "--after-seq", "1"],
        ["r", "--after-seq", "-1"],
        ["r", "--streams", "nonsense"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        app(["subscribe", *arguments])
    assert caught.value.code == 2


async def test_a_run_that_ended_before_is_replayed_and_its_end_is_known_without_events(
    environ: dict[str, str],
) -> None:
    sent = await run("agent", "hi", "--model", "scripted/tools", "--session", "s", "--json", environ=environ)
    run_id, last_seq = values(sent.out)[0]["run_id"], values(sent.out)[-1]["seq"]
    replayed = await run("subscribe", run_id, environ=environ)
    assert replayed.code == 0
    head, user, *_, outcome = replayed.out.splitlines()
    assert (head, user) == (f"run {run_id} in session agent:main:s", "user: hi")
    assert "> exec command=seq 9\n< exec ok in" in replayed.out
    for arguments in (["--after-seq", last_seq], ["--after-seq", last_seq, "--json"]):
        ended = await run("subscribe", run_id, *arguments, environ=environ)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out == ("" if "--json" in arguments else f"{outcome}\n")
    ahead = await run("subscribe", run_id, "--after-seq", "9999", environ=environ)
    assert ahead.code == 1
    assert "CURSOR_AHEAD" in ahead.err
    unknown = await run("subscribe", "run_x", environ=environ)
    assert (unknown.code, unknown.out) == (2, "")
    assert "RUN_NOT_FOUND" in unknown.err


async def test_a_run_is_followed_over_the_death_of_its_server(environ: dict[str, str], home: Path) -> None:
    address = f"unix:{home}/s.sock"
    server = await serving(address, environ=environ)
    agent = await start("agent", "hi", "--model", "scripted/steady", "--json", "--address", address, environ=environ)
    assert agent.stdout is not None
    run_id = json.loads(await agent.stdout.readline())["run_id"]
    reader = await start("subscribe", run_id, "--json", "--address", address, environ=environ)
    assert reader.stdout is not None
    first = [json.loads(await reader.stdout.readline()) for _ in range(5)]
    server.kill()
    await server.communicate()
    server = await serving(address, environ=environ)
    ended = await end(reader)
    assert (await end(agent)).code == 0
    server.terminate()
    await server.communicate()
    assert ended.code == 0
    assert "connection lost, trying again" in ended.err
    events = [*first, *values(ended.out)]
    assert "snapshot" in events[0]
    assert [int(event["seq"]) for event in events[1:]] == list(range(1, len(events)))
    assert any(event.get("lifecycle", {}).get("phase") == "LIFECYCLE_PHASE_RECOVERED" for event in events)


async def test_a_session_is_followed_from_run_to_run_and_read_on_by_cursor(environ: dict[str, str], home: Path) -> None:
    address = f"unix:{home}/s.sock"
    server = await serving(address, environ=environ)
    at = ["--address", address]
    for message in ("one", "two"):
        assert (await run("agent", message, "--model", "scripted/hello", "--session", "s", *at)).code == 0
    command: list[str] = []
    for target in (["--session", "s"], ["--all"]):
        reader = await start("subscribe", *target, *at)
        assert reader.stdout is not None
        if target == ["--session", "s"]:
            await reader.stdout.readuntil(b"You said two")
            await reader.stdout.readuntil(b"= succeeded")
        else:
            # Nobody knows when it has begun to listen; so there is something to hear until it has heard it.
            endless = await start("agent", "x", "--model", "scripted/endless", "--session", "t", *at)
            await reader.stdout.readuntil(b"in session agent:main:t")
            await reader.stdout.readuntil(b"tick")
            assert (await run("abort", "--session", "t", *at)).code == 0
            assert (await end(endless)).code == 3
            await reader.stdout.readuntil(b"= cancelled")
        reader.send_signal(signal.SIGINT)
        ended = await end(reader)
        assert ended.code == 0
        command = ended.err.strip().removeprefix("laneway: to go on: laneway ").split()
        assert command[: 1 + len(target)] == ["subscribe", *target]
    await run("agent", "three", "--model", "scripted/hello", "--session", "s", *at)
    reader = await start(*command, "--json", *at)
    assert reader.stdout is not None
    first = json.loads(await reader.stdout.readline())
    assert (first["seq"], first["session_key"]) == ("1", "agent:main:s")
    reader.send_signal(signal.SIGINT)
    assert (await end(reader)).code == 0
    server.terminate()
    await server.communicate()


async def test_a_session_without_events_is_waited_for_and_that_is_said(environ: dict[str, str]) -> None:
    await say(environ)  # starts the server
    reader = await start("subscribe", "--session", "nope", "--json", environ=environ)
    assert reader.stderr is not None
    told = await reader.stderr.readline()
    assert told == b"laneway: session nope does not exist yet; waiting for its first message\n"
    await say(environ, session="nope")
    assert reader.stdout is not None
    assert json.loads(await reader.stdout.readline())["session_key"] == "agent:main:nope"
    reader.send_signal(signal.SIGINT)
    ended = await end(reader)
    assert ended.code == 0
    assert "waiting" not in ended.err
