"""Sessions as callers change and read them (D-21), over a real run service."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.fakes.recording_tool import RecordingTool
from tests.unit.runs.bench import TENANT, Bench, check_is_over, running_bench, shape, soon
from tests.unit.runs.staged_model import answer, asks
from tests.unit.runs.stubborn_tool import StubbornTool

from lanewayd.errors import LanewayError
from lanewayd.messages import UserMessage
from lanewayd.records import EntryKind, RunState, SessionFilter
from lanewayd.runs.outcome import StopCause
from lanewayd.sessions.lifecycle import Sessions
from lanewayd.wiring.sessions import make_sessions


class AnyModels:
    """Implements SessionModels where every model and level will do."""

    def settable_model(self, agent_id: str, reference: str) -> str:
        return reference

    def check_settable_thinking(self, agent_id: str, model: str, level: str) -> None:
        return


def sessions_of(bench: Bench) -> Sessions:
    return make_sessions(bench.parts, bench.registry, AnyModels())


async def test_a_reset_begins_a_fresh_window_under_the_same_id_and_keeps_what_was_said(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        sessions = sessions_of(bench)
        bench.provider.plan(answer("one"), answer("two"))
        await bench.done(await bench.accept(message="first"))
        before = await sessions.get(TENANT, "talk")
        after, aborted = await sessions.reset(TENANT, "TALK", force=False)
        assert (after.session_id, aborted) == (before.session_id, ())
        await bench.done(await bench.accept(message="second"))
        assert bench.provider.calls[1].request.messages == (UserMessage("second"),)
        kinds = [entry.kind for _, entry in await sessions.entries(TENANT, "talk", after_no=0, limit=10)]
        assert kinds == [EntryKind.USER, EntryKind.ASSISTANT, EntryKind.RESET, EntryKind.USER, EntryKind.ASSISTANT]
        assert bench.lock_files() == []


@pytest.mark.parametrize("act", ["reset", "delete"])
async def test_a_session_at_work_is_refused_at_once_and_goes_on(tmp_path: Path, act: str) -> None:
    async with running_bench(tmp_path) as bench:
        sessions = sessions_of(bench)
        run_id = await bench.accept()
        call = await bench.model_call()
        with pytest.raises(LanewayError) as raised:
            await soon(getattr(sessions, act)(TENANT, "talk", force=False))
        assert (raised.value.code, raised.value.metadata) == ("SESSION_ACTIVE", {"run_id": run_id})
        call.end(answer())
        assert (await bench.done(run_id)).state is RunState.SUCCEEDED


async def test_a_forced_reset_aborts_what_runs_and_what_waits_first(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        running, queued = await bench.accept(), await bench.accept()
        await bench.model_call()
        _, aborted = await soon(sessions_of(bench).reset(TENANT, "talk", force=True))
        assert set(aborted) == {running, queued}
        for run_id in (running, queued):
            run = await bench.run(run_id)
            assert (run.state, run.stop_reason) == (RunState.CANCELLED, "reset")
            await check_is_over(bench, run_id)


async def test_a_forced_delete_removes_everything_but_the_runs_ends(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        sessions = sessions_of(bench)
        bench.provider.plan(answer("secret"))
        ended = await bench.accept()
        await bench.done(ended)
        running = await bench.accept()
        await bench.model_call()
        assert await soon(sessions.delete(TENANT, "talk", force=True)) == (running,)
        with pytest.raises(LanewayError) as raised:
            await sessions.get(TENANT, "talk")
        assert raised.value.code == "SESSION_NOT_FOUND"
        assert shape(await bench.events(ended)) == ["lifecycle end"]
        assert (await bench.run(ended)).payloads == ()
        assert (await bench.run(running)).stop_reason == "deleted"
        await bench.idle()
        assert bench.lock_files() == []


async def test_a_run_that_does_not_let_go_in_time_keeps_its_session(tmp_path: Path) -> None:
    tool = StubbornTool()
    async with running_bench(tmp_path, tools=[tool], lock_timeout_s=1.0) as bench:
        bench.provider.plan(asks(("c1", "stubborn")))
        run_id = await bench.accept()
        await soon(tool.asked.get())
        bench.scheduler.stop(run_id, StopCause.ABORT, "rpc")
        await soon(tool.asked_to_stop.wait())
        await bench.clock.advance(30)
        await bench.ended(run_id)
        resetting = asyncio.create_task(sessions_of(bench).reset(TENANT, "talk", force=True))
        for delay_s in (0.05, 0.1, 0.2, 0.4, 0.25):  # the last one is what is left of the second
            await soon(bench.clock.wait_for_sleepers(1))
            await bench.clock.advance(delay_s)
        with pytest.raises(LanewayError) as raised:
            await soon(resetting)
        assert raised.value.code == "SESSION_BUSY"
        tool.let_go.set()


async def ask(sessions: Sessions, act: str, tenant: str, key: str) -> object:
    """One call of each kind."""
    if act == "get":
        return await sessions.get(tenant, key)
    if act == "reset":
        return await sessions.reset(tenant, key, force=True)
    if act == "delete":
        return await sessions.delete(tenant, key, force=True)
    if act == "entries":
        return await sessions.entries(tenant, key, after_no=0, limit=1)
    return await sessions.entry(tenant, key, "e")


@pytest.mark.parametrize("act", ["get", "reset", "delete", "entries", "entry"])
async def test_an_unknown_session_and_another_tenants_session_do_not_exist(tmp_path: Path, act: str) -> None:
    async with running_bench(tmp_path) as bench:
        sessions = sessions_of(bench)
        bench.provider.plan(answer())
        await bench.done(await bench.accept())
        for tenant, key in ((TENANT, "nothing"), ("stranger", "talk")):
            with pytest.raises(LanewayError) as raised:
                await ask(sessions, act, tenant, key)
            assert raised.value.code == "SESSION_NOT_FOUND"


async def test_entries_are_read_in_pages_and_one_by_one(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        sessions = sessions_of(bench)
        bench.provider.plan(answer(), answer())
        for _ in range(2):
            await bench.done(await bench.accept())
        found, after_no = [], 0
        while page := await sessions.entries(TENANT, "talk", after_no=after_no, limit=3):
            after_no = page[-1][0]
            found += [entry for _, entry in page]
        assert found == await bench.entries()
        assert await sessions.entry(TENANT, "talk", found[2].entry_id) == found[2]
        with pytest.raises(LanewayError) as raised:
            await sessions.entry(TENANT, "talk", "nothing")
        assert raised.value.code == "ENTRY_NOT_FOUND"
        [session] = await sessions.list(TENANT, SessionFilter(), before=None, limit=10)
        assert session.session_key == "agent:main:talk"


async def test_an_export_is_one_line_of_json_for_the_header_and_each_entry(tmp_path: Path) -> None:
    async with running_bench(tmp_path, tools=[RecordingTool("rec")]) as bench:
        bench.provider.plan(asks(("c1", "rec")), answer("done\u2028"))
        await bench.done(await bench.accept())
        lines = [line async for line in sessions_of(bench).export(TENANT, "talk")]
        assert all("\n" not in line for line in lines)
        header, *entries, end = (json.loads(line) for line in lines)
        session = await sessions_of(bench).get(TENANT, "talk")
        assert (header["type"], header["version"], header["id"]) == ("session", 3, session.session_id)
        assert [entry["message"]["role"] for entry in entries] == ["user", "assistant", "toolResult", "assistant"]
        parents = [entry["parentId"] for entry in entries]
        assert parents == [None, *(entry["id"] for entry in entries[:-1])]
        assert (end["parentId"], end["data"]) == (entries[-1]["id"], {"entries": 4})


async def test_a_long_transcript_is_exported_whole(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        calls = [f"c{number}" for number in range(450)]
        bench.provider.plan(asks(*((call_id, "nothing") for call_id in calls)), answer())
        await bench.done(await bench.accept())
        lines = [json.loads(line) async for line in sessions_of(bench).export(TENANT, "talk")]
        results = [line["message"]["toolCallId"] for line in lines[1:-1] if line["message"]["role"] == "toolResult"]
        assert (results, lines[-1]["data"]) == (calls, {"entries": 453})
