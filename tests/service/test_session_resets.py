"""Reset policies through the whole service: sessions that begin anew with a message (spec 03, 7.4; R-1.25, R-1.33)."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import calls_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.refusals import refused
from tests.service.test_sessions import entries_of, said_to_model

from laneway.v1 import agent_pb2, run_pb2, session_pb2
from lanewayd.app import Seams

IDLE = '\n[session.reset]\nmode = "idle"\nidle_minutes = 30\n'
START = datetime(2026, 1, 1, tzinfo=UTC)


def at(minutes: float) -> Seams:
    """A service whose clock stands so many minutes after the start."""
    return Seams(clock=FakeClock(START + timedelta(minutes=minutes)))


async def get(service: RunningService) -> session_pb2.Session:
    return await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key="s"))


async def test_a_message_after_the_time_begins_a_new_transcript_under_the_same_key(
    tmp_path: Path, model: ModelServer
) -> None:
    home = tmp_path / "home"
    async with running_service(home, model=model, toml=IDLE, seams=at(0)) as service:
        old = await service.accept("one", session_key="s", label="mine")
        await service.wait(old.run_id)
        update = session_pb2.UpdateSessionRequest(session=session_pb2.Session(session_key="s", pinned=True))
        update.update_mask.paths.append("pinned")
        await service.sessions.UpdateSession(update)
    async with running_service(home, model=model, toml=IDLE, seams=at(30)) as service:
        same = await service.accept("two", session_key="s")
        await service.wait(same.run_id)
        assert same.session_id == old.session_id
    async with running_service(home, model=model, toml=IDLE, seams=at(60.1)) as service:
        before = await get(service)
        new = await service.accept("three", session_id=old.session_id)  # a wish for the old one is no promise
        await service.wait(new.run_id)
        assert (new.session_key, new.session_id != old.session_id) == (old.session_key, True)
        assert new.disposition == run_pb2.DISPOSITION_STARTED
        assert await said_to_model(model) == [("user", "three")]
        session = await get(service)
        assert (session.session_id, session.created_at) == (new.session_id, before.created_at)
        assert (session.label, session.pinned) == ("mine", True)
        assert session.usage == (await service.wait(new.run_id)).usage
        assert [entry.run_id for entry in await entries_of(service)] == [new.run_id] * 2
        assert (await refused(service.accept("x", session_id=old.session_id))).reason == "SESSION_NOT_FOUND"
        assert (await service.wait(old.run_id)).payloads[0].text == "ok"


async def test_deleting_a_session_removes_what_was_said_before_it_began_anew(
    tmp_path: Path, model: ModelServer
) -> None:
    home = tmp_path / "home"
    async with running_service(home, model=model, toml=IDLE, seams=at(0)) as service:
        old = await service.accept("secret words", session_key="s")
        await service.wait(old.run_id)
    async with running_service(home, model=model, toml=IDLE, seams=at(31)) as service:
        await service.finish("two", session_key="s")
        await service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key="s"))
        assert not (await service.wait(old.run_id)).payloads
    with closing(sqlite3.connect(home / "laneway.db")) as database:
        assert database.execute("SELECT session_id FROM entries").fetchall() == []
        assert database.execute("SELECT session_id FROM past_transcripts").fetchall() == []
        assert database.execute("SELECT DISTINCT message FROM run_texts").fetchall() == [("",)]


async def test_a_session_at_work_goes_on_however_late_it_is(tmp_path: Path, model: ModelServer) -> None:
    tool, clock = RecordingTool("rec", hold=True), FakeClock()
    async with running_service(
        tmp_path / "home", model=model, toml=IDLE, tools=[tool], seams=Seams(clock=clock)
    ) as service:
        model.answer(calls_answer(("rec", {})))
        run = await service.accept("one", session_key="s")
        call = await tool.asked.get()
        clock.leap(timedelta(hours=1))
        follow_up = await service.accept("two", session_key="s")
        assert follow_up.session_id == run.session_id
        call.answer.set_result(DONE)
        assert (await service.wait(follow_up.run_id)).status == agent_pb2.WAIT_STATUS_OK
        assert (await service.accept("three", session_key="s")).session_id == run.session_id


@pytest.mark.parametrize(
    ("kind", "keeps_fresh", "begins_anew"),
    [
        (agent_pb2.PROVENANCE_KIND_UNSPECIFIED, True, True),
        (agent_pb2.PROVENANCE_KIND_EXTERNAL_USER, True, True),
        (agent_pb2.PROVENANCE_KIND_INTER_SESSION, False, True),
        (agent_pb2.PROVENANCE_KIND_INTERNAL_SYSTEM, False, False),
    ],
)
async def test_who_keeps_a_session_fresh_and_who_begins_it_anew(
    tmp_path: Path, model: ModelServer, kind: agent_pb2.ProvenanceKind, keeps_fresh: bool, begins_anew: bool
) -> None:
    clock = FakeClock()
    provenance = agent_pb2.Provenance(kind=kind)
    async with running_service(tmp_path / "home", model=model, toml=IDLE, seams=Seams(clock=clock)) as service:
        first = await service.accept("one", session_key="s")
        await service.wait(first.run_id)
        clock.leap(timedelta(minutes=20))
        await service.finish("tick", session_key="s", provenance=provenance)
        clock.leap(timedelta(minutes=20))
        third = await service.accept("three", session_key="s")
        await service.wait(third.run_id)
        assert (third.session_id == first.session_id) is keeps_fresh
        clock.leap(timedelta(minutes=31))
        fourth = await service.accept("four", session_key="s", provenance=provenance)
        assert (fourth.session_id != third.session_id) is begins_anew


async def test_channels_and_types_have_policies_of_their_own(tmp_path: Path, model: ModelServer) -> None:
    toml = (
        '\n[session.reset]\nmode = "idle"\nidle_minutes = 10\n[session.reset_by_type.group]\nmode = "none"\n'
        '[session.reset_by_channel.Mail]\nmode = "daily"\nat_hour = 23\n'
    )
    clock = FakeClock()
    async with running_service(tmp_path / "home", model=model, toml=toml, seams=Seams(clock=clock)) as service:
        group, mail = "agent:main:x:group:g", {"session_key": "m", "channel": "mail"}
        before = [
            await service.accept(session_key="s"),
            await service.accept(session_key=group),
            await service.accept(**mail),
        ]
        for run in before:
            await service.wait(run.run_id)
        clock.leap(timedelta(hours=26))
        after = [
            await service.accept(session_key="s"),
            await service.accept(session_key=group),
            await service.accept(**mail),
        ]
        kept = [old.session_id == new.session_id for old, new in zip(before, after, strict=True)]
        assert kept == [False, True, False]
        for run in after:
            await service.wait(run.run_id)
        clock.leap(timedelta(minutes=11))
        assert (await service.accept(**mail)).session_id == after[2].session_id


async def test_without_a_policy_nothing_begins_anew_and_a_reset_by_hand_keeps_the_id(
    tmp_path: Path, model: ModelServer
) -> None:
    clock = FakeClock()
    async with running_service(tmp_path / "home", model=model, seams=Seams(clock=clock)) as service:
        first = await service.accept("one", session_key="s")
        await service.wait(first.run_id)
        clock.leap(timedelta(days=1000))
        await service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="s"))
        second = await service.accept("two", session_key="s")
        assert second.session_id == first.session_id
