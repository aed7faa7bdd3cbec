"""Cases of group d: what stands in a transcript, whatever tools say and whatever stops a run."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.cases.observing import (
    Observed,
    check_conversation,
    check_conversations,
    check_transcript,
    entries_of,
    observe,
    results_sent,
    whole_text,
)
from tests.fakes.model_answers import DONE as END_MARK
from tests.fakes.model_answers import Answer, delta
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.server_process import ServerProcess
from tests.fakes.service import RunningService, running_service, toml_for
from tests.processes.ledger_tools import read_ledger
from tests.processes.server_entry import Extras

from laneway.v1 import agent_pb2, event_pb2, run_pb2, session_pb2
from lanewayd.tools.interface import ToolResult

# Half pairs, NUL and a noncharacter, as a Python string that a careless tool may build.
SPOILT = "a\ud83d b\udc00 c\x00 d\ufffe e\U0001f600."
MENDED = "a\ufffd b\ufffd c\ufffd d\ufffe e\U0001f600."


def calls(*named: tuple[str, str, str]) -> Answer:
    """An answer with these calls: (id, tool, arguments as JSON)."""
    items = [
        {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, (call_id, name, arguments) in enumerate(named)
    ]
    return Answer([delta(tool_calls=items), delta("tool_calls"), END_MARK])


async def test_b_048_text_without_meaning_in_utf8_is_mended_once_for_all(tmp_path: Path, model: ModelServer) -> None:
    """A lone half and NUL become U+FFFD."""
    home = tmp_path / "home"
    tool = RecordingTool("rec", result=ToolResult(SPOILT))
    async with running_service(home, model=model, tools=[tool]) as service:
        model.answer(calls(("c1", "rec", "{}")))
        observed = await observe(service, (await service.accept("one", session_key="s")).run_id)
        assert [block.text for block in observed.tool_results[0].content] == [MENDED]
        shown = [tool.result.text for tool in observed.tools(event_pb2.TOOL_PHASE_RESULT)]
        assert shown == [MENDED]
        assert (await service.finish("two", session_key="s")).state == run_pb2.RUN_STATE_SUCCEEDED
    async with running_service(home, model=model) as service:
        assert (await service.finish("three", session_key="s")).state == run_pb2.RUN_STATE_SUCCEEDED
        check_transcript(await entries_of(service, "s"))
    assert len(model.requests) == 4
    for request in model.requests[1:]:
        assert results_sent(request) == [("c1", MENDED)]


def check_stopped_batch(request_messages: list[dict[str, object]], message: str) -> list[tuple[object, object]]:
    """The calls c1, c2, c3 with one result each, directly behind their message, then the user's text."""
    asking = next(at for at, each in enumerate(request_messages) if each.get("tool_calls"))
    results = request_messages[asking + 1 : asking + 4]
    assert [each["role"] for each in results] == ["tool"] * 3
    assert request_messages[-1] == {"role": "user", "content": message}
    return [(each["tool_call_id"], each["content"]) for each in results]


async def test_b_052_an_aborted_batch_has_a_result_for_each_call(tmp_path: Path, model: ModelServer) -> None:
    """One sequential tool: c1 is done, c2 is running, c3 has not begun."""
    tool = RecordingTool("seq", hold=True, is_sequential=True)
    home = tmp_path / "home"
    async with running_service(home, model=model, tools=[tool]) as service:
        model.answer(calls(*((call_id, "seq", "{}") for call_id in ("c1", "c2", "c3"))))
        run_id = (await service.accept("go", session_key="s")).run_id
        (await tool.asked.get()).answer.set_result(ToolResult("real"))
        await tool.asked.get()
        receipt = await service.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))
        assert list(receipt.aborted_run_ids) == [run_id]
        observed = await observe(service, run_id)
        assert observed.run.state == run_pb2.RUN_STATE_CANCELLED
        assert [result.outcome for result in observed.tool_results] == [
            event_pb2.TOOL_OUTCOME_OK,
            event_pb2.TOOL_OUTCOME_ABORTED,
            event_pb2.TOOL_OUTCOME_ABORTED,
        ]
        assert (await service.finish("and now?", session_key="s")).state == run_pb2.RUN_STATE_SUCCEEDED
        sent = check_stopped_batch(check_conversation(model.requests[-1]), "and now?")
        assert sent[0] == ("c1", "real")
        assert [call_id for call_id, _ in sent[1:]] == ["c2", "c3"]
        assert all("aborted" in str(text) and len(str(text)) < 200 for _, text in sent[1:])
        assert [call.context.call_id for call in tool.calls] == ["c1", "c2"]
    # Nothing is repaired a second time.
    async with running_service(home, model=model, tools=[tool]) as service:
        assert (await service.finish("again", session_key="s")).state == run_pb2.RUN_STATE_SUCCEEDED
        assert check_stopped_batch(check_conversation(model.requests[-1]), "again") == sent
        check_transcript(await entries_of(service, "s"))


@pytest.fixture
async def server(tmp_path: Path, model: ModelServer) -> AsyncGenerator[ServerProcess, None]:
    """A real server process, not started, with the ledger tools."""
    process = ServerProcess(tmp_path, toml=toml_for(model), extras=Extras(ledger=str(tmp_path / "ledger")))
    yield process
    await process.close()


async def test_b_052_a_killed_batch_has_a_result_for_each_call(server: ServerProcess, model: ModelServer) -> None:
    """SIGKILL with c1 done and c2 running: c1 keeps its result, the outcome of c2 is unknown, and the next server runs
    c3 (D-2, instead of "aborted"). A result whose call is missing: tests/unit/providers/test_history.py."""
    model.answer(
        calls(
            ("c1", "turns", '{"token":"one"}'),
            ("c2", "turns", '{"token":"two","then":"hang"}'),
            ("c3", "turns", '{"token":"three"}'),
        )
    )
    await server.start()
    run_id = (await server.accept("go", session_key="s")).run_id
    await server.notice("effect", "two")
    await server.restart()
    assert (await server.wait(run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    assert (await server.wait((await server.accept("and now?", session_key="s")).run_id)).payloads[0].text == "ok"
    check_conversations(model)
    listed = await server.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key="s"))
    check_transcript(listed.entries)
    results = [entry.tool_result for entry in listed.entries if entry.HasField("tool_result")]
    assert [(result.call_id, result.outcome) for result in results] == [
        ("c1", event_pb2.TOOL_OUTCOME_OK),
        ("c2", event_pb2.TOOL_OUTCOME_UNKNOWN),
        ("c3", event_pb2.TOOL_OUTCOME_OK),
    ]
    assert results_sent(model.requests[-1]) == [(result.call_id, result.content[0].text) for result in results]
    assert "outcome unknown" in results[1].content[0].text
    effects = [line.token for line in read_ledger(server.ledger) if line.what == "effect"]
    assert effects == ["one", "two", "three"]


def terminal_noise() -> tuple[bytes, list[str]]:
    """400 KiB of cursor movements, colours and progress bars, and the 2 KiB of text in them."""
    real = [f"line {number:02}: \u00fcber {'x' * 30}" for number in range(42)]
    bar = b"".join(b"\x1b[2K\x1b[1A\x1b[38;2;1;2;3m[" + b"#" * width + b"]\r" for width in range(100))
    noise = bar + b"\x1b[2K\x1b[38;2;1;2;3m"
    noise *= 400 * 1024 // len(real) // len(noise) + 1
    return b"".join(noise + line.encode() + b"\x1b[0m\n" for line in real), real


async def run_exec(service: RunningService, model: ModelServer, command: str) -> tuple[Observed, str, str]:
    """One run with one `exec`: what was seen, the result as stored, and as sent to the model."""
    model.answer(calls(("", "exec", json.dumps({"command": command}))))
    observed = await observe(service, (await service.accept("go", session_key="s")).run_id)
    entry = next(entry for entry in observed.entries if entry.HasField("tool_result"))
    stored = await whole_text(service, "s", entry.entry_id)
    return observed, stored, results_sent(model.requests[-1])[-1][1]


async def test_b_053_terminal_noise_is_left_out_and_long_output_is_capped(
    service: RunningService, model: ModelServer
) -> None:
    workspace = service.home / "workspaces" / "main"
    workspace.mkdir(parents=True, exist_ok=True)
    noise, real = terminal_noise()
    assert len(noise) >= 400 * 1024
    (workspace / "noise").write_bytes(noise)
    _, stored, sent = await run_exec(service, model, "cat noise")
    assert stored == sent
    assert not {"\x1b", "\r", "#", "\ufffd"} & set(stored)
    assert stored.rstrip("\n").split("\n") == real

    long = "".join(f"{number} \u20ac\U0001f600 " for number in range(40_000))
    (workspace / "long").write_text(long, encoding="utf-8")
    _, stored, sent = await run_exec(service, model, "cat long")
    assert stored == sent
    assert len(stored) <= 16_000
    head, mark, tail = stored.split("\n")
    assert long.startswith(head)
    assert long.endswith(tail)
    assert mark == f"[... {len(long) - len(head) - len(tail)} of {len(long)} characters left out ...]"
