"""Files that come with messages, through the whole service: kept, shown to models, removed with their last message."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService, running_service
from tests.service.refusals import refused, refused_and_unchanged

from laneway.v1 import agent_pb2, session_pb2

PNG = b"\x89PNG\r\n\x1a\n" + b"not much of a cat"
NOTES = b"remember the milk"
EYES = """
[models.catalog."mock/any"]
input = ["text", "image"]
"""
INVALID = grpc.StatusCode.INVALID_ARGUMENT


def cat(**fields: Any) -> agent_pb2.Attachment:
    return agent_pb2.Attachment(**{"name": "cat.png", "mime_type": "image/png", "data": PNG, **fields})


def notes(**fields: Any) -> agent_pb2.Attachment:
    return agent_pb2.Attachment(**{"name": "notes.txt", "mime_type": "text/plain", "data": NOTES, **fields})


def files_at(home: Path) -> dict[str, bytes]:
    folder = home / "blobs"
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def name_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def last_said(model: ModelServer) -> Any:
    return model.requests[-1].messages[-1]["content"]


async def test_files_are_kept_and_shown_to_the_model_and_in_the_transcript(tmp_path: Path, model: ModelServer) -> None:
    home = tmp_path / "home"
    async with running_service(home, model=model, toml=EYES) as service:
        run = await service.accept("look", session_key="s", attachments=[cat(), notes()])
        await service.wait(run.run_id)
        assert files_at(home) == {name_of(PNG): PNG, name_of(NOTES): NOTES}
        image, text = sorted(last_said(model), key=lambda part: part["type"])
        assert image["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
        assert text["text"] == f"look\n[notes.txt]\n```\n{NOTES.decode()}\n```"
        page = await service.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key="s"))
        said, first, second = page.entries[0].user.content
        assert said.text == "look"
        assert first.attachment == session_pb2.AttachmentReference(
            name="cat.png", mime_type="image/png", hash=name_of(PNG), size=len(PNG)
        )
        assert second.attachment.hash == name_of(NOTES)
        # The next turn sees them again.
        await service.wait((await service.accept("and now?", session_key="s")).run_id)
        assert base64.b64encode(PNG).decode() in str(model.requests[-1].messages)


async def test_a_model_that_takes_no_images_is_told_of_them(service: RunningService, model: ModelServer) -> None:
    run = await service.accept("", session_key="s", attachments=[cat()])
    await service.wait(run.run_id)
    assert last_said(model) == "[cat.png: attached image, not shown because this model does not take images]"


async def test_a_file_goes_with_the_last_session_that_has_it(tmp_path: Path, model: ModelServer) -> None:
    home = tmp_path / "home"
    async with running_service(home, model=model) as service:
        for session_key in ("one", "two"):
            await service.wait((await service.accept("hi", session_key=session_key, attachments=[cat()])).run_id)
        await service.wait((await service.accept("hi", session_key="one", attachments=[notes()])).run_id)
        assert set(files_at(home)) == {name_of(PNG), name_of(NOTES)}
        await service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key="one"))
        assert set(files_at(home)) == {name_of(PNG)}
        await service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key="two"))
        assert files_at(home) == {}


async def test_what_a_crash_has_left_is_swept_away_and_what_is_named_stays(tmp_path: Path, model: ModelServer) -> None:
    home = tmp_path / "home"
    async with running_service(home, model=model) as service:
        await service.wait((await service.accept("hi", session_key="s", attachments=[cat()])).run_id)
    (home / "blobs" / name_of(NOTES)).write_bytes(NOTES)
    (home / "blobs" / f"{name_of(b'x')}.unfinished").write_bytes(b"half")
    async with running_service(home, model=model) as service:
        await service.service.parts.blobs.sweep(service.service.parts.store.unnamed_blobs)
        assert set(files_at(home)) == {name_of(PNG)}


async def test_a_repeated_message_with_files_is_answered_and_another_file_is_another_request(
    service: RunningService,
) -> None:
    first = await service.accept("hi", session_key="s", idempotency_key="k", attachments=[cat()])
    again = await service.accept("hi", session_key="s", idempotency_key="k", attachments=[cat()])
    assert (again.run_id, again.duplicate) == (first.run_id, True)
    refusal = await refused(service.accept("hi", session_key="s", idempotency_key="k", attachments=[notes()]))
    assert refusal.reason == "IDEMPOTENCY_KEY_REUSED"


@pytest.mark.parametrize(
    ("attachment", "reason"),
    [
        (cat(data=b"x" * 41), "ATTACHMENT_TOO_LARGE"),
        (agent_pb2.Attachment(name="a"), "FIELD_INVALID"),
        (cat(data=b""), "FIELD_INVALID"),
        (cat(name="../cat.png"), "FIELD_INVALID"),
        (cat(name="a\\b"), "FIELD_INVALID"),
        (cat(name="a\nb"), "FIELD_INVALID"),
        (cat(name="x" * 513), "FIELD_INVALID"),
        (agent_pb2.Attachment(uri="https://example.com/cat.png"), "FIELD_INVALID"),
        (agent_pb2.Attachment(uri="file:///etc/passwd"), "FIELD_INVALID"),
        (agent_pb2.Attachment(uri="data:image/png;base64,%%%"), "FIELD_INVALID"),
    ],
)
async def test_a_file_that_cannot_be_is_refused_and_changes_nothing(
    tmp_path: Path, model: ModelServer, attachment: agent_pb2.Attachment, reason: str
) -> None:
    home = tmp_path / "home"
    async with running_service(home, model=model, toml="[limits]\nmax_attachment_bytes = 40\n") as service:
        refusal = await refused_and_unchanged(service, {"attachments": [attachment]})
        assert (refusal.status, refusal.reason, refusal.metadata) == (INVALID, reason, {"field": "attachments"})
        assert files_at(home) == {}


async def test_too_many_files_and_files_too_large_together_are_refused(tmp_path: Path, model: ModelServer) -> None:
    async with running_service(
        tmp_path / "home", model=model, toml="[limits]\nmax_attachments_bytes = 40\n"
    ) as service:
        refusal = await refused(service.accept("hi", attachments=[cat(), cat(name="b")]))
        assert refusal.reason == "ATTACHMENT_TOO_LARGE"
        refusal = await refused(service.accept("hi", attachments=[notes(data=b"x")] * 21))
        assert refusal.reason == "FIELD_INVALID"


@pytest.mark.parametrize(
    ("attachment", "mime_type", "content"),
    [
        (cat(mime_type=""), "image/png", PNG),
        (cat(mime_type="image/jpeg"), "image/png", PNG),
        (notes(mime_type="image/png"), "application/octet-stream", NOTES),
        (notes(mime_type=" Text/Plain "), "text/plain", NOTES),
        (agent_pb2.Attachment(uri="data:text/plain;base64,aGk="), "text/plain", b"hi"),
        (agent_pb2.Attachment(uri="data:,a%20b"), "", b"a b"),
        (agent_pb2.Attachment(data=b"RIFF\0\0\0\0WEBPx"), "image/webp", b"RIFF\0\0\0\0WEBPx"),
    ],
)
async def test_the_bytes_say_what_an_image_is(
    tmp_path: Path, model: ModelServer, attachment: agent_pb2.Attachment, mime_type: str, content: bytes
) -> None:
    home = tmp_path / "home"
    async with running_service(home, model=model) as service:
        await service.wait((await service.accept("hi", session_key="s", attachments=[attachment])).run_id)
        page = await service.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key="s"))
        assert page.entries[0].user.content[1].attachment.mime_type == mime_type
        assert files_at(home) == {name_of(content): content}


async def test_a_disk_that_takes_no_file_refuses_the_message_and_changes_nothing(
    tmp_path: Path, model: ModelServer
) -> None:
    home = tmp_path / "home"
    async with running_service(home, model=model) as service:
        (home / "blobs").write_text("a file where the folder should be")
        refusal = await refused_and_unchanged(service, {"attachments": [cat()]})
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        (home / "blobs").unlink()
        run = await service.accept("hi", attachments=[cat()])
        assert (await service.wait(run.run_id)).status == agent_pb2.WAIT_STATUS_OK
