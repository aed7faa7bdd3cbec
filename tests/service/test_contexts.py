"""A turn sees the same conversation whether it was kept in memory or is read from the transcript."""

from pathlib import Path

import pytest
from tests.fakes.model_answers import calls_answer, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.service import RunningService, running_service

from laneway.v1 import session_pb2
from lanewayd.errors import StoreUnavailable


def _forbid_reading_transcripts(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_session_id: str) -> None:
        raise StoreUnavailable("the transcript was read")

    monkeypatch.setattr(service.service.parts.store, "context", refuse)


async def test_later_turns_do_not_read_the_transcript_and_see_all_of_it(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_service(tmp_path / "home", model=model, tools=[RecordingTool("rec")]) as service:
        _forbid_reading_transcripts(service, monkeypatch)
        model.answer(calls_answer(("rec", {"k": 1}), text="Looking. "), text_answer("fo\u2028", "und"))
        await service.finish("look", session_key="chat")
        await service.finish("and \u00e4now", session_key="chat")
        await service.finish("and then", session_key="chat")
    kept = model.requests[-1].messages

    async with running_service(tmp_path / "home", model=model, tools=[RecordingTool("rec")]) as service:
        await service.finish("more", session_key="chat")
    read = model.requests[-1].messages
    assert [message["role"] for message in kept[1:]] == [
        *("user", "assistant", "tool", "assistant"),
        *("user", "assistant", "user"),
    ]
    assert read[: len(kept)] == kept


async def test_a_turn_after_a_reset_sees_nothing_of_what_was_kept(service: RunningService, model: ModelServer) -> None:
    await service.finish("first", session_key="chat")
    await service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="chat"))
    await service.finish("second", session_key="chat")

    assert [message["content"] for message in model.requests[-1].messages[1:]] == ["second"]


async def test_a_turn_after_a_run_that_failed_sees_what_its_transcript_has(
    service: RunningService, model: ModelServer
) -> None:
    await service.finish("first", session_key="chat")
    await service.finish("second", session_key="chat", max_turns=1, model="mock/nothing", tools_allow=["unknown"])
    await service.finish("third", session_key="chat")

    assert [message["content"] for message in model.requests[-1].messages[1:]] == ["first", "ok", "second", "third"]
