"""What retention does to sessions, on a whole service: unused ones, too many, too many bytes (spec 03, 7.6)."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.fakes.log_lines import kept_log_lines
from tests.fakes.model_answers import calls_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import TENANT_KEY, RunningService, running_service
from tests.service.refusals import refused
from tests.service.test_attachments import EYES, cat, files_at
from tests.service.test_session_resets import IDLE
from tests.service.test_session_settings import session_of, update
from tests.service.test_sessions import entries_of

from laneway.v1 import agent_pb2, session_pb2
from lanewayd.app import Seams
from lanewayd.runs import session_upkeep
from lanewayd.runs.session_upkeep import SessionBounds, SessionUpkeep
from lanewayd.transcript.archives import Archives

DAY = timedelta(days=1)
NO_BOUNDS = SessionBounds(
    unused_for=None, max_sessions=None, recent=timedelta(0), archives_age=None, max_bytes=None, high_water_bytes=0
)


@dataclass
class Stage:
    """A service whose time of day the test moves, and retention applied by hand."""

    service: RunningService
    clock: FakeClock
    tool: RecordingTool

    async def apply(self, **bounds: Any) -> None:
        parts = self.service.service.parts
        await SessionUpkeep(replace(NO_BOUNDS, **bounds), parts, Archives(self.service.home / "archives")).apply()

    async def keys(self, *, archived: bool | None = None) -> set[str]:
        request = session_pb2.ListSessionsRequest(page_size=500, archived=archived)
        listed = await self.service.sessions.ListSessions(request)
        return {session.session_key.removeprefix("agent:main:") for session in listed.sessions}

    async def speak(self, *keys: str, **fields: Any) -> None:
        """A run in each session, each a second later."""
        for key in keys:
            self.clock.leap(timedelta(seconds=1))
            await self.service.finish(f"hello {key}", session_key=key, **fields)

    async def set(self, session_key: str, **marks: bool) -> None:
        await self.service.sessions.UpdateSession(update(session_key=session_key, **marks))

    def archives(self) -> list[Path]:
        return sorted((self.service.home / "archives").glob("*/*"))


@asynccontextmanager
async def staged(home: Path, model: ModelServer, toml: str = "") -> AsyncIterator[Stage]:
    clock, tool = FakeClock(), RecordingTool("rec", hold=True)
    async with running_service(home, model=model, toml=toml, tools=[tool], seams=Seams(clock=clock)) as service:
        yield Stage(service, clock, tool)


@pytest.fixture
async def stage(tmp_path: Path, model: ModelServer) -> AsyncIterator[Stage]:
    async with staged(tmp_path / "home", model, EYES) as stage:
        yield stage


async def sessions_of_all_kinds(stage: Stage, model: ModelServer) -> asyncio.Future[Any]:
    """`plain`, `pinned`, `channel`, `active`, `archived`, all as old; the answer that ends the run of `active`."""
    await stage.speak("plain", "pinned", "archived")
    await stage.speak("channel", channel="mail", queue_mode=agent_pb2.QUEUE_MODE_FOLLOWUP)
    await stage.speak("channel")  # the next message need not name it
    await stage.set("pinned", pinned=True)
    await stage.set("archived", archived=True)
    model.answer(calls_answer(("rec", {})))
    await stage.service.accept(session_key="active")
    return (await stage.tool.asked.get()).answer


async def test_what_was_unused_for_too_long_goes_but_for_what_must_stay(stage: Stage, model: ModelServer) -> None:
    ends_active = await sessions_of_all_kinds(stage, model)
    stage.clock.leap(30 * DAY)
    await stage.speak("young")
    await stage.apply(unused_for=31 * DAY)
    assert await stage.keys() == {"plain", "pinned", "channel", "active", "archived", "young"}
    await stage.apply(unused_for=30 * DAY)
    assert await stage.keys() == {"pinned", "channel", "active", "young"}
    assert len(stage.archives()) == 2
    await stage.apply(unused_for=30 * DAY, spares_external=False)
    assert await stage.keys() == {"pinned", "active", "young"}
    ends_active.set_result(DONE)


async def test_a_session_that_was_removed_comes_back_by_importing_its_archive(stage: Stage) -> None:
    run = await stage.service.accept("look", session_key="s", attachments=[cat()])
    await stage.service.wait(run.run_id)
    before = await entries_of(stage.service)
    stage.clock.leap(2 * DAY)
    await stage.apply(unused_for=DAY)
    await stage.service.service.parts.blobs.sweep(stage.service.service.parts.store.unnamed_blobs)
    assert files_at(stage.service.home) == {}
    assert not (await stage.service.wait(run.run_id)).payloads
    [archive] = stage.archives()
    lines = gzip.decompress(archive.read_bytes()).decode().splitlines()
    requests = (session_pb2.ImportSessionRequest(line=line) for line in lines)
    answer = await stage.service.sessions.ImportSession(requests)
    assert answer.session.session_key == "agent:main:s"
    assert [(entry.time, entry.user) for entry in await entries_of(stage.service)] == [
        (entry.time, entry.user) for entry in before
    ]


async def test_above_the_number_the_longest_unused_are_archived_until_they_are_written_to(
    stage: Stage, model: ModelServer
) -> None:
    ends_active = await sessions_of_all_kinds(stage, model)
    await stage.speak("b", "c", "d")
    stage.clock.leap(DAY)
    assert len(await stage.keys(archived=False)) == 7
    await stage.apply(max_sessions=7)
    assert await stage.keys(archived=True) == {"archived"}
    await stage.apply(max_sessions=5)
    assert await stage.keys(archived=True) == {"archived", "plain", "b"}
    await stage.apply(max_sessions=1, recent=2 * DAY)
    assert await stage.keys(archived=True) == {"archived", "plain", "b"}
    await stage.apply(max_sessions=1)  # the others must stay: the store is above its bound
    assert await stage.keys(archived=False) == {"pinned", "channel", "active"}
    assert len(await entries_of(stage.service, "b")) == 2
    await stage.speak("b")
    assert not (await session_of(stage.service, "b")).archived
    await stage.service.sessions.UpdateSession(update(session_key="c", label="read"))
    assert (await session_of(stage.service, "c")).archived
    await stage.speak("c")
    await stage.set("d", archived=True)  # now by a user
    assert (await refused(stage.service.accept(session_key="d"))).reason == "SESSION_ARCHIVED"
    ends_active.set_result(DONE)


async def test_sessions_of_one_message_go_after_a_day_if_there_are_too_many_and_push_nothing_out(stage: Stage) -> None:
    old = [await one_off(stage) for _ in range(3)]
    await stage.speak("x:run:y")  # its key only looks like one
    stage.clock.leap(DAY)
    await stage.speak("a")
    young = [await one_off(stage) for _ in range(3)]
    everything = {*old, *young, "x:run:y", "a"}
    await stage.apply(max_sessions=8)
    assert await stage.keys() == everything
    await stage.apply(max_sessions=7)
    assert await stage.keys() == everything - {old[0]}
    await stage.apply(max_sessions=2)
    assert await stage.keys() == everything - {*old}
    assert (await stage.keys(archived=True), stage.archives()) == (set(), [])
    await stage.apply(max_sessions=1)
    assert await stage.keys(archived=True) == {"x:run:y"}


async def one_off(stage: Stage) -> str:
    stage.clock.leap(timedelta(seconds=1))
    run = await stage.service.accept()
    await stage.service.wait(run.run_id)
    return run.session_key.removeprefix("agent:main:")


async def test_the_number_is_that_of_each_tenant(stage: Stage) -> None:
    await stage.speak("a", "b")
    request = agent_pb2.AgentRequest(message="x", session_key="theirs", model="mock/any")
    await stage.service.agent.Agent(request, metadata=[(TENANT_KEY, "them")])
    stage.clock.leap(DAY)
    await stage.apply(max_sessions=2)
    assert await stage.keys(archived=True) == set()


async def test_above_the_budget_archives_go_first_then_archived_sessions_and_never_others(
    stage: Stage, model: ModelServer
) -> None:
    for key in ("gone1", "gone2"):
        await stage.speak(key)
        stage.clock.leap(2 * DAY)
        await stage.apply(unused_for=DAY)
    ends_active = await sessions_of_all_kinds(stage, model)
    for key in ("older", "newer"):
        stage.clock.leap(timedelta(seconds=1))
        await stage.service.finish(300_000 * "y", session_key=key)
        await stage.set(key, archived=True)
    store, files = stage.service.service.parts.store, stage.archives()
    newer_bytes = max(files, key=lambda path: path.stat().st_mtime).stat().st_size
    used_bytes = await store.used_bytes()
    assert len(files) == 2
    await stage.apply(max_bytes=used_bytes + 2**20, high_water_bytes=0)
    assert stage.archives() == files
    await stage.apply(max_bytes=1, high_water_bytes=used_bytes + newer_bytes)
    assert len(stage.archives()) == 1
    await stage.apply(max_bytes=1, high_water_bytes=used_bytes - 100_000)
    assert stage.archives() == []
    assert await stage.keys() == {"plain", "pinned", "channel", "active", "newer"}
    assert await store.used_bytes() <= used_bytes - 100_000
    stage.clock.leap(timedelta(seconds=1))
    with kept_log_lines() as lines:
        await stage.apply(max_bytes=1, high_water_bytes=1)
    assert await stage.keys() == {"plain", "pinned", "channel", "active"}
    assert any("nothing left to remove" in line for line in lines)
    ends_active.set_result(DONE)


async def test_files_of_archived_transcripts_go_by_age_if_that_is_asked_for(stage: Stage) -> None:
    for key in ("a", "b"):
        await stage.speak(key)
        stage.clock.leap(2 * DAY)
        await stage.apply(unused_for=DAY)
    await stage.apply(archives_age=3 * DAY)
    assert len(stage.archives()) == 2
    await stage.apply(archives_age=DAY)
    assert len(stage.archives()) == 1
    stage.clock.leap(2 * DAY)
    await stage.apply(archives_age=DAY)
    assert stage.archives() == []


async def test_what_was_said_before_a_session_began_anew_leaves_the_store_and_goes_with_the_session(
    tmp_path: Path, model: ModelServer
) -> None:
    async with staged(tmp_path / "home", model, IDLE) as stage:
        for _ in range(3):
            await stage.speak("s")
            stage.clock.leap(DAY)
        await stage.speak("other")
        store = stage.service.service.parts.store
        assert len(await store.past_transcripts(10)) == 2
        await stage.apply()
        assert await store.past_transcripts(10) == []
        files = stage.archives()
        assert len(files) == 2
        first = gzip.decompress(files[0].read_bytes()).decode().splitlines()
        assert (json.loads(first[0])["sessionKey"], len(first)) == ("agent:main:s", 4)
        assert len(await entries_of(stage.service)) == 2
        await stage.speak("s")  # begins anew once more
        await stage.service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key="s"))
        assert (stage.archives(), await store.past_transcripts(10)) == ([], [])


async def test_a_session_that_is_used_while_it_is_archived_stays(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    await stage.speak("s")
    stage.clock.leap(2 * DAY)
    write = Archives.write

    async def slow_write(*args: Any, **fields: Any) -> Path:
        path = await write(*args, **fields)
        await stage.service.accept("wait for me", session_key="s")
        return path

    monkeypatch.setattr(Archives, "write", slow_write)
    await stage.apply(unused_for=DAY)
    assert (await stage.keys(), stage.archives()) == ({"s"}, [])


async def test_nothing_is_removed_that_cannot_be_archived(stage: Stage) -> None:
    await stage.speak("s")
    stage.clock.leap(2 * DAY)
    (stage.service.home / "archives").write_text("in the way")
    await stage.speak("archived")
    await stage.set("archived", archived=True)
    stage.clock.leap(timedelta(seconds=1))
    await stage.apply(unused_for=DAY, max_bytes=1, high_water_bytes=1)
    clock = FakeClock(stage.clock.now())  # the server sweeps by its own
    parts = replace(stage.service.service.parts, clock=clock)
    upkeep = SessionUpkeep(replace(NO_BOUNDS, unused_for=DAY), parts, Archives(stage.service.home / "archives"))
    with kept_log_lines() as lines:
        await upkeep.sweep()
    assert any("cannot be archived" in line for line in lines)
    assert await stage.keys() == {"s"}
    (stage.service.home / "archives").unlink()
    await upkeep.sweep()  # it is not time yet
    assert await stage.keys() == {"s"}
    await clock.advance(30 * 60)
    await upkeep.sweep()
    assert await stage.keys() == set()


async def test_a_warning_removes_nothing(stage: Stage) -> None:
    await stage.speak("a", "b")
    stage.clock.leap(2 * DAY)
    with kept_log_lines() as lines:
        await stage.apply(unused_for=DAY, max_sessions=1, max_bytes=1, only_warns=True)
        await stage.apply(unused_for=3 * DAY, max_sessions=2, max_bytes=2**40, only_warns=True)
    [warning] = [json.loads(line) for line in lines if "over their bounds" in line]
    assert (warning["unused"], warning["too_many"], warning["bytes_over"] > 0) == (2, 1, True)
    assert await stage.keys(archived=False) == {"a", "b"}


async def test_a_sweep_takes_out_so_many_and_the_next_one_the_rest(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_upkeep, "MAX_REMOVED", 2)
    await stage.speak("a", "b", "c")
    stage.clock.leap(2 * DAY)
    bounds = replace(NO_BOUNDS, unused_for=DAY)
    upkeep = SessionUpkeep(bounds, stage.service.service.parts, Archives(stage.service.home / "archives"))
    await upkeep.sweep()
    assert await stage.keys() == {"c"}
    await upkeep.sweep()
    assert await stage.keys() == set()
    await stage.speak("d")
    stage.clock.leap(2 * DAY)
    await upkeep.sweep()  # nothing was left: it comes in half an hour
    assert await stage.keys() == {"d"}


async def test_a_server_applies_them_when_it_starts(tmp_path: Path, model: ModelServer) -> None:
    home, toml = tmp_path / "home", "\n[session.maintenance]\nprune_after_days = 1\n"
    async with staged(home, model, toml) as stage:
        await stage.speak("s")
    clock = FakeClock()
    clock.leap(2 * DAY)
    async with running_service(home, model=model, toml=toml, seams=Seams(clock=clock)) as service:
        stage = Stage(service, clock, RecordingTool("rec"))
        async with asyncio.timeout(20):
            while await stage.keys():  # each asks the server: it is at it beside
                pass
        assert len(stage.archives()) == 1
