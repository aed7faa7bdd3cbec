"""Imports of sessions through the whole service (D-9, D-21; spec 03, 7.2)."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.fakes.cutting_proxy import CuttingProxy, Harm
from tests.fakes.model_answers import DONE as END_MARK
from tests.fakes.model_answers import Answer, calls_answer, delta, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.refusals import Refusal, all_that_is_stored, checked, refused
from tests.service.test_sessions import entries_of, said_to_model

from laneway.client import LanewayClient
from laneway.errors import InvalidRequest
from laneway.v1 import session_pb2, session_pb2_grpc

HEADER = {"type": "session", "version": 3, "id": "x", "timestamp": "2026-01-01T00:00:00+00:00", "sessionKey": "s"}
USER = {
    "type": "message",
    "id": "00000001",
    "parentId": None,
    "timestamp": "2026-01-02T03:04:05.678901+02:00",
    "message": {"role": "user", "content": [{"type": "text", "text": "one"}]},
}


def requests(*lines: object, session_key: str = "") -> list[session_pb2.ImportSessionRequest]:
    """One message for each line; objects as JSON."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    sent = [session_pb2.ImportSessionRequest(line=text) for text in texts]
    if sent:
        sent[0].session_key = session_key
    return sent


def importing(service: RunningService, sent: Iterable[session_pb2.ImportSessionRequest]) -> Any:
    async def stream() -> AsyncIterator[session_pb2.ImportSessionRequest]:
        for request in sent:
            yield request

    return service.sessions.ImportSession(stream())


async def exported(client: LanewayClient, session_key: str) -> list[str]:
    return [line async for line in client.sessions.export(session_key)]


def without_ids(lines: list[str]) -> list[dict[str, Any]]:
    """An export without what must differ in a copy; ids of entries become their places."""
    values = [json.loads(line) for line in lines]
    for name in ("id", "sessionKey"):
        values[0].pop(name)
    places = {value["id"]: place for place, value in enumerate(values[1:])} | {None: None}
    for value in values[1:]:
        value["id"], value["parentId"] = places[value["id"]], places[value["parentId"]]
    return values


async def test_an_export_that_is_imported_and_exported_again_is_the_same(tmp_path: Path, model: ModelServer) -> None:
    tool = RecordingTool("rec")
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        model.answer(
            calls_answer(("rec", {"n": 9007199254740993, "t": "\u00e4"}), text="Looking. "),
            Answer([delta(reasoning_content="hm"), delta(content="found"), delta("stop"), END_MARK]),
        )
        await service.finish("before", session_key="s")
        await service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="s"))
        model.answer(calls_answer(("none", {})), text_answer("that was refused"))
        await service.finish("l\u00f6\u00f6k\u2028here" + "x" * 600_000, session_key="s")
        async with LanewayClient(service.target) as client:
            first = await exported(client, "s")
            answer = await client.sessions.import_lines(first, session_key="copy")
            second = await exported(client, "copy")
        assert without_ids(second) == without_ids(first)
        assert answer.entries == len(first) - 2 == 9
        ids = [{json.loads(line)["id"] for line in lines} for lines in (first, second)]
        assert ids[0].isdisjoint(ids[1])
        assert answer.session.session_key == "agent:main:copy"
        assert answer.session == await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key="copy"))
        originals, copies = await entries_of(service), await entries_of(service, "copy")
        assert [entry.time for entry in copies] == [entry.time for entry in originals]
        assert {entry.run_id for entry in copies} == {""}
        await service.finish("and now", session_key="s")
        in_original = await said_to_model(model)
        await service.finish("and now", session_key="copy")
        assert await said_to_model(model) == in_original
        assert in_original[-1] == ("user", "and now")
        assert len(in_original) == 5
        shown = [request.messages[1:] for request in model.requests[-2:]]
        assert shown[0] == shown[1]


async def test_without_a_key_the_one_of_the_header_is_taken_and_blank_lines_say_nothing(
    service: RunningService, model: ModelServer
) -> None:
    answer = await importing(service, requests(HEADER, "", USER, "  "))
    assert (answer.session.session_key, answer.entries) == ("agent:main:s", 1)
    assert (answer.session.created_at.seconds, answer.session.active_run_id) == (1767225600, "")
    (entry,) = await entries_of(service)
    assert entry.time.ToJsonString() == "2026-01-02T01:04:05.678901Z"
    await service.finish("two", session_key="s")
    assert await said_to_model(model) == [("user", "one"), ("user", "two")]


async def test_a_key_that_is_taken_is_refused_and_another_one_is_not(service: RunningService) -> None:
    await service.finish("hello", session_key="s")
    before = await all_that_is_stored(service)
    for sent in (requests(HEADER, USER), requests(HEADER, USER, session_key=" S ")):
        refusal = await refused(importing(service, sent))
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID")
        assert refusal.metadata == {"field": "session_key"}
        assert "agent:main:s" in refusal.text
    assert await all_that_is_stored(service) == before
    answer = await importing(service, requests(HEADER, USER, session_key="t"))
    assert answer.session.session_key == "agent:main:t"


def changed(**changes: Any) -> dict[str, Any]:
    return {**USER, **changes}


def of_role(role: str, **fields: Any) -> dict[str, Any]:
    return changed(message={"role": role, "content": [], **fields})


def saying(**block: Any) -> dict[str, Any]:
    return of_role("assistant", content=[block])


OURS = {**HEADER, "hasEnd": True}


def end(entries: object = 1) -> dict[str, Any]:
    return {"type": "custom", "customType": "laneway.end", "data": {"entries": entries}}


async def test_an_export_of_ours_is_taken_with_its_end_and_one_of_others_without(service: RunningService) -> None:
    exports: list[tuple[list[object], int]] = [
        ([OURS, USER, end()], 1),
        ([HEADER, USER], 1),
        ([HEADER, USER, end()], 1),
        ([OURS, end(0)], 0),
    ]
    for number, (lines, entries) in enumerate(exports):
        answer = await importing(service, requests(*lines, session_key=f"s{number}"))
        assert answer.entries == entries


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([OURS, USER], "line 3: the last line is missing: the export was cut"),
        ([OURS], "line 2: the last line is missing: the export was cut"),
        ([OURS, end()], "line 2: the export had 1 entries, but 0 stand before its end"),
        ([OURS, USER, {**end(), "data": None}], "line 3: the export had null entries"),
        ([OURS, USER, end(), changed(id="2")], "line 4: nothing follows the end"),
        ([HEADER, {**end(), "customType": "other"}], 'line 2: entries of the type "custom" cannot be imported'),
        ([], "there are no lines"),
        (["", " "], "there are no lines"),
        ([USER], "line 1: the first line is the header"),
        ([{**HEADER, "version": 2}], "line 1: `version` is 2"),
        ([{**HEADER, "timestamp": "yesterday"}], 'line 1: `timestamp` is "yesterday"'),
        ([{**HEADER, "timestamp": "0001-01-01T00:00:00+05:00"}], "line 1: `timestamp`"),
        ([{**HEADER, "sessionKey": "a\nb"}], "line 1: `sessionKey` has control characters"),
        ([{**HEADER, "sessionKey": 7}], "line 1: `sessionKey` is no text"),
        ([HEADER, "{"], "line 2: it is no JSON"),
        ([HEADER, "[" * 100_000], "line 2: it is no JSON"),
        ([HEADER, '{"n": NaN}'], "line 2: it is no JSON (NaN is no number)"),
        ([HEADER, "[]"], "line 2: it is no JSON object"),
        ([HEADER, USER, "", HEADER], 'line 4: entries of the type "session"'),
        ([HEADER, changed(type="compaction")], 'line 2: entries of the type "compaction" cannot be imported'),
        ([HEADER, {"type": "message"}], "line 2: `message` is no object"),
        ([HEADER, changed(id=7)], "line 2: `id` is no text"),
        ([HEADER, changed(id="")], "line 2: `id` is empty"),
        ([HEADER, USER, changed(parentId="00000001")], 'line 3: the id "00000001" stands in an earlier line'),
        ([HEADER, changed(parentId="7")], 'line 2: `parentId` is "7", but the entry before is null'),
        ([HEADER, USER, changed(id="2")], "line 3: `parentId` is null, but the entry before"),
        ([HEADER, changed(timestamp="2026-01-01T00:00:00")], "line 2: `timestamp`"),
        ([HEADER, {"type": "reset", "firstKeptEntryId": "1"}], "line 2: a reset that keeps entries"),
        ([HEADER, of_role("system")], 'line 2: `role` is "system"'),
        ([HEADER, of_role("user", content=7)], "line 2: `content` is no list"),
        ([HEADER, of_role("user", content=[{"type": "image"}])], 'line 2: content of the type "image"'),
        ([HEADER, of_role("assistant", stopReason="why")], 'line 2: `stopReason` is "why"'),
        ([HEADER, saying(type="image")], 'line 2: content of the type "image"'),
        ([HEADER, saying(type="text")], "line 2: `text` is missing"),
        ([HEADER, saying(type="toolCall", id="", name="n", arguments={})], "line 2: a tool call has an `id`"),
        ([HEADER, saying(type="toolCall", id="c", name="n", arguments="{")], "line 2: `arguments` of the tool call"),
        ([HEADER, of_role("toolResult", toolCallId="c")], "line 2: `toolName` is missing"),
        ([HEADER, of_role("toolResult", toolCallId="", toolName="n")], "line 2: a tool result has"),
        ([HEADER, of_role("toolResult", toolCallId="c", toolName="n", isError=1)], "line 2: `isError`"),
    ],
)
async def test_a_bad_line_is_named_and_nothing_is_changed(
    service: RunningService, lines: list[object], text: str
) -> None:
    before = await all_that_is_stored(service)
    refusal = await refused(importing(service, requests(*lines)))
    assert (refusal.status, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID")
    assert refusal.metadata == {"field": "line"}
    assert text in refusal.text
    assert await all_that_is_stored(service) == before


async def test_a_key_that_cannot_be_had_is_refused(service: RunningService) -> None:
    nameless = {name: value for name, value in HEADER.items() if name != "sessionKey"}
    second_key = [*requests(HEADER), *requests(USER, session_key="t")]
    for sent, reason in (
        (requests(nameless, USER), "FIELD_INVALID"),
        (requests(HEADER, USER, session_key="\x07"), "SESSION_KEY_MALFORMED"),
        (requests(HEADER, USER, session_key="x" * 510), "SESSION_KEY_MALFORMED"),
        (requests({**HEADER, "sessionKey": "x" * 600}, USER), "SESSION_KEY_MALFORMED"),
        (requests({**HEADER, "sessionKey": "agent:main"}, USER), "SESSION_KEY_MALFORMED"),
        (second_key, "FIELD_INVALID"),
    ):
        refusal = await refused(importing(service, sent))
        assert (refusal.reason, refusal.metadata) == (reason, {"field": "session_key"})
    refusal = await refused(importing(service, requests(HEADER, USER, session_key="agent:nobody:s")))
    assert (refusal.status, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "AGENT_NOT_FOUND")
    assert (await all_that_is_stored(service))[1] == []


LOST_BY_GRPC = "Internal error from Core"
"""What grpc.aio's client says, now and then, of a refusal that arrives while it writes a message."""


async def refused_in_the_middle(call: Callable[[], Any]) -> Refusal:
    """The refusal of an import whose client is still writing; asked for again when gRPC has lost it."""
    for _ in range(5):
        try:
            await call()
        except grpc.aio.AioRpcError as error:
            if error.details() != LOST_BY_GRPC:
                return checked(error)
    raise AssertionError("no refusal arrives")


async def test_a_line_that_is_too_long_or_not_complete_is_refused_while_it_comes_in(service: RunningService) -> None:
    endless = session_pb2.ImportSessionRequest(line="x" * 1024 * 1024, line_continues=True)
    refusal = await refused_in_the_middle(lambda: importing(service, (endless for _ in range(1000))))
    assert (refusal.reason, refusal.metadata) == ("FIELD_INVALID", {"field": "line"})
    assert refusal.text == "line 1: a line has at most 4,194,304 bytes"
    refusal = await refused(importing(service, [*requests(HEADER), endless]))
    assert refusal.text == "line 2: it is not complete"


async def test_a_tenant_has_few_imports_open_at_once(service: RunningService) -> None:
    begun, may_end = [asyncio.Event() for _ in range(4)], asyncio.Event()

    async def slow(number: int) -> AsyncIterator[session_pb2.ImportSessionRequest]:
        yield requests(HEADER, session_key=f"k{number}")[0]
        begun[number].set()
        await may_end.wait()
        yield requests(USER)[0]

    calls = [asyncio.ensure_future(service.sessions.ImportSession(slow(number))) for number in range(4)]
    # gRPC asks for the next message when the one before has left; the server's answers are in the order of calls.
    await asyncio.gather(*(each.wait() for each in begun))
    async with asyncio.timeout(20):
        while (refusal := await self_refusal(service)) is None:
            await service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key="k9"))
    assert (refusal.status, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TENANT_LIMIT")
    may_end.set()
    for answer in await asyncio.gather(*calls):
        assert answer.entries == 1
    assert (await importing(service, requests(HEADER, USER))).entries == 1


async def self_refusal(service: RunningService) -> Any:
    """The refusal of one more import; None when it succeeded, because another one had not arrived yet."""
    call = importing(service, requests(HEADER, session_key="k9"))
    try:
        await call
    except grpc.aio.AioRpcError:
        return await refused(call)
    return None


async def test_a_message_and_an_import_for_one_key_at_once_make_one_session(service: RunningService) -> None:
    async def outcome() -> bool:
        try:
            await importing(service, requests(HEADER, USER))
        except grpc.aio.AioRpcError:
            return False
        return True

    was_imported, _ = await asyncio.gather(outcome(), service.finish("hi", session_key="s"))
    kinds = [entry.WhichOneof("body") for entry in await entries_of(service)]
    assert kinds == (["user", "user", "assistant"] if was_imported else ["user", "assistant"])


async def test_an_import_outlives_a_restart(tmp_path: Path, model: ModelServer) -> None:
    async with running_service(tmp_path / "home", model=model) as service:
        await importing(service, requests(HEADER, USER))
    async with running_service(tmp_path / "home", model=model) as service:
        await service.finish("two", session_key="s")
        assert await said_to_model(model) == [("user", "one"), ("user", "two")]
        async with LanewayClient(service.target) as client:
            with pytest.raises(InvalidRequest, match="there is a session"):
                await client.sessions.import_lines([json.dumps(HEADER)])


async def test_an_upload_that_is_cut_off_imports_nothing(tmp_path: Path) -> None:
    async with running_service(tmp_path / "home", listen="127.0.0.1:0") as service:
        kinds = (Harm.RESET, Harm.TRUNCATE)
        async with CuttingProxy(service.target, seed=1, kinds=kinds, most_bytes=0) as proxy:
            for number in range(25):
                key = f"k{number}"

                async def upload(key: str = key) -> AsyncIterator[session_pb2.ImportSessionRequest]:
                    """Two lines that could be all; the next one is cut."""
                    for request in requests(HEADER, USER, session_key=key):
                        yield request
                    proxy.harm(1)
                    while True:
                        yield session_pb2.ImportSessionRequest(line=" ")

                async with grpc.aio.insecure_channel(proxy.target) as channel:
                    with pytest.raises(grpc.aio.AioRpcError):
                        await session_pb2_grpc.SessionServiceStub(channel).ImportSession(upload())
                await proxy.harmed()
            proxy.calm()
        # Only when their slots are free again all those calls are over.
        async with asyncio.timeout(20):
            while await self_refusal(service) is not None:
                pass
        assert [session.session_key for session in (await all_that_is_stored(service))[1]] == ["agent:main:k9"]


async def test_lines_that_cannot_be_read_raise_their_own_error_and_import_nothing(service: RunningService) -> None:
    def broken() -> Iterable[str]:
        yield json.dumps(HEADER)
        raise OSError("the disk is gone")

    async with LanewayClient(service.target) as client:
        with pytest.raises(OSError, match="the disk is gone"):
            await client.sessions.import_lines(broken())
        assert [session async for session in client.sessions.list()] == []
