"""Files that come with messages, through the whole service: kept, shown to models, removed with their last message."""

import base64
import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.fakes.languages import LANGUAGES
from tests.fakes.model_server import ModelServer
from tests.fakes.service import TENANT_KEY, RunningService, running_service
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


async def test_the_image_model_answers_messages_with_images_where_the_agents_own_cannot_see(
    tmp_path: Path, model: ModelServer
) -> None:
    toml = EYES + '[agents.defaults]\nmodel = "mock/blind"\nimage_model = "mock/any"\n'
    async with running_service(tmp_path / "home", model=model, toml=toml) as service:
        for attachments in ([cat()], [notes()], []):
            run = await service.accept("look", model="", session_key="s", attachments=attachments)
            assert (await service.wait(run.run_id)).status == agent_pb2.WAIT_STATUS_OK
    assert [request.model for request in model.requests] == ["any", "blind", "blind"]
    assert "image_url" in str(model.requests[0].messages)
    assert "attached image, not shown" in str(model.requests[2].messages)


async def test_an_import_mentions_the_files_and_shows_them_to_nobody_who_did_not_send_them(
    tmp_path: Path, model: ModelServer
) -> None:
    async with running_service(tmp_path / "home", model=model, toml=EYES) as service:
        await service.wait((await service.accept("look", session_key="s", attachments=[cat()])).run_id)
        lines = await lines_of(service, "s")
        assert json.loads(lines[1])["message"]["content"][1] == {
            "type": "attachment", "name": "cat.png", "mimeType": "image/png", "hash": name_of(PNG), "size": len(PNG)
        }  # fmt: skip
        for tenant, content in ((None, "image_url"), ("other", "its content is not available")):
            metadata = ((TENANT_KEY, tenant),) if tenant else ()
            sent = [session_pb2.ImportSessionRequest(line=line) for line in lines]
            sent[0].session_key = "copy"
            await service.sessions.ImportSession(iter(sent), metadata=metadata)
            request = agent_pb2.AgentRequest(message="and now?", session_key="copy", model="mock/any")
            answer = await service.agent.Agent(request, metadata=metadata)
            wait = agent_pb2.WaitRequest(run_id=answer.run_id)
            assert (await service.agent.Wait(wait, metadata=metadata)).status == agent_pb2.WAIT_STATUS_OK
            assert content in str(model.requests[-1].messages[1])
            assert len(await lines_of(service, "copy", metadata=metadata)) == len(lines) + 2


async def lines_of(service: RunningService, session_key: str, **call: Any) -> list[str]:
    """A session's export."""
    request = session_pb2.ExportSessionRequest(session_key=session_key)
    return [response.line async for response in service.sessions.ExportSession(request, **call)]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"hash": "../../etc/passwd"}, "`hash` of an attachment"),
        ({"hash": None}, "`hash` is missing"),
        ({"size": -1}, "`size` of an attachment"),
        ({"size": True}, "`size` of an attachment"),
        ({"name": "x" * 513}, "at most 512"),
    ],
)
async def test_a_mention_that_cannot_be_is_not_imported(
    service: RunningService, wrong: dict[str, Any], problem: str
) -> None:
    mention = {"type": "attachment", "name": "a", "mimeType": "image/png", "hash": name_of(PNG), "size": 3, **wrong}
    header = {"type": "session", "version": 3, "timestamp": "2026-01-01T00:00:00+00:00", "sessionKey": "s"}
    message = {"role": "user", "content": [{"type": "text", "text": "look"}, mention]}
    entry = {"type": "message", "id": "1", "parentId": None, "timestamp": header["timestamp"], "message": message}
    sent = [session_pb2.ImportSessionRequest(line=json.dumps(line)) for line in (header, entry)]
    refusal = await refused(service.sessions.ImportSession(iter(sent)))
    assert refusal.reason == "FIELD_INVALID"
    assert problem in refusal.text


async def test_a_deleted_session_leaves_no_name_of_its_files(service: RunningService) -> None:
    await service.wait((await service.accept("hi", session_key="s", attachments=[cat(name="secret.png")])).run_id)
    await service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key="s"))
    with closing(sqlite3.connect(service.home / "laneway.db")) as connection:
        assert "secret.png" not in "\n".join(connection.iterdump())
        assert connection.execute("SELECT blob_hash FROM blobs").fetchall() == []
        assert connection.execute("SELECT blob_hash FROM attachments").fetchall() == []


@pytest.mark.parametrize("api", list(LANGUAGES))
async def test_every_language_carries_the_bytes_of_an_image_and_the_text_of_a_file(tmp_path: Path, api: str) -> None:
    language = LANGUAGES[api]
    async with ModelServer() as model:
        toml = f'[models.providers.lang]\napi = "{api}"\nbase_url = "{model.base_url}"\n'
        toml += '[models.catalog."lang/seer"]\ninput = ["text", "image"]\n'
        async with running_service(tmp_path / "home", toml=toml) as service:
            model.answer(language.text("a cat"))
            run = await service.accept("look", model="lang/seer", attachments=[cat(), notes()])
            assert (await service.wait(run.run_id)).status == agent_pb2.WAIT_STATUS_OK
        assert find_image(api, model.requests[-1].json) == PNG
        assert NOTES.decode() in model.requests[-1].body.decode()
        assert base64.b64encode(NOTES) not in model.requests[-1].body


def find_image(api: str, body: dict[str, Any]) -> bytes:
    """The bytes of the image in the last message, from where this language has them."""
    match api:
        case "gemini":
            parts = body["contents"][-1]["parts"]
            (data,) = [part["inlineData"] for part in parts if "inlineData" in part]
            mime_type, encoded = data["mimeType"], data["data"]
        case "anthropic":
            (source,) = [part["source"] for part in body["messages"][-1]["content"] if part["type"] == "image"]
            mime_type, encoded = source["media_type"], source["data"]
        case "ollama":
            mime_type, (encoded,) = "image/png", body["messages"][-1]["images"]
        case _:
            said = body["input" if api == "openai_responses" else "messages"][-1]["content"]
            (url,) = [part["image_url"] for part in said if "image_url" in part]
            head, encoded = (url if isinstance(url, str) else url["url"]).split(";base64,")
            mime_type = head.removeprefix("data:")
    assert mime_type == "image/png"
    return base64.b64decode(encoded)


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
        (cat(mime_type="image/png\n"), "FIELD_INVALID"),
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
        (agent_pb2.Attachment(uri="data:,a%20b"), "text/plain", b"a b"),
        (agent_pb2.Attachment(data=b"%PDF-1.7"), "application/pdf", b"%PDF-1.7"),
        (agent_pb2.Attachment(data=b"\xff\x00"), "", b"\xff\x00"),
        (agent_pb2.Attachment(data=b"a\x00"), "", b"a\x00"),
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
