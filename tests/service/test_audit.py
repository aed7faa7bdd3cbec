"""The audit ledger through the whole service (spec 03, 10): what is recorded, what never is, and who sees it."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.commit_gates import FailingGate, HoldingGate
from tests.fakes.model_answers import Answer, calls_answer, delta, failure, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.service import TENANT_KEY, RunningService, running_service
from tests.service.refusals import refused

from laneway.v1 import admin_pb2, agent_pb2, run_pb2, session_pb2
from lanewayd.app import Seams
from lanewayd.messages import ToolOutcome
from lanewayd.store.audit_commands import AppendAudit
from lanewayd.tools.interface import ToolResult

MESSAGES = '[audit]\nmessages = "all"\n'
CANARY = "canary-51be04"


async def records(service: RunningService, tenant: str = "default", **filters: Any) -> list[admin_pb2.AuditRecord]:
    """All records that pass, oldest first."""
    request = admin_pb2.ListAuditRecordsRequest(page_size=3, **filters)
    found: list[admin_pb2.AuditRecord] = []
    while True:
        page = await service.admin.ListAuditRecords(request, metadata=((TENANT_KEY, tenant),))
        found += page.records
        if not page.next_page_token:
            return found[::-1]
        request.page_token = page.next_page_token


def acts(found: list[admin_pb2.AuditRecord]) -> list[tuple[str, str, str, str]]:
    """Action, status, code and actor of each."""
    return [
        (
            admin_pb2.AuditAction.Name(record.action).removeprefix("AUDIT_ACTION_").lower(),
            admin_pb2.AuditStatus.Name(record.status).removeprefix("AUDIT_STATUS_").lower(),
            record.code,
            admin_pb2.AuditActor.Name(record.actor).removeprefix("AUDIT_ACTOR_").lower(),
        )
        for record in found
    ]


def rows(home: Path, query: str = "SELECT * FROM audit_records") -> list[dict[str, Any]]:
    with closing(sqlite3.connect(home / "laneway.db")) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(query)]


async def test_a_run_and_its_tool_are_recorded_with_their_places(tmp_path: Path, model: ModelServer) -> None:
    async with running_service(tmp_path / "home", model=model, tools=[RecordingTool("rec")]) as service:
        model.answer(calls_answer(("rec", {"k": 1})), text_answer("done"))
        accepted = await service.accept("look", session_key="talk")
        await service.wait(accepted.run_id)
        found = await records(service)
        assert acts(found) == [
            ("run_started", "started", "", "agent"),
            ("tool_started", "started", "", "agent"),
            ("tool_finished", "succeeded", "", "agent"),
            ("run_finished", "succeeded", "", "agent"),
        ]
        events = {event.seq: event for event in await service.events(accepted.run_id)}
        for record in found:
            assert (record.run_id, record.session_id) == (accepted.run_id, accepted.session_id)
            assert (record.agent_id, record.session_key) == ("main", "agent:main:talk")
            assert (record.schema_version, record.redaction) == (1, "metadata_only")
            assert record.time == events[record.source_seq].time
        assert [record.sequence for record in found] == [1, 2, 3, 4]
        assert len({record.event_id for record in found}) == 4
        assert [events[record.source_seq].WhichOneof("payload") for record in found] == [
            "lifecycle",
            "tool",
            "tool",
            "lifecycle",
        ]
        assert [record.tool_name for record in found] == ["", "rec", "rec", ""]
        assert found[1].tool_call == found[2].tool_call != ""


OUTCOMES = {
    ToolOutcome.ERROR: ("failed", "TOOL_ERROR"),
    ToolOutcome.BLOCKED: ("blocked", "TOOL_BLOCKED"),
    ToolOutcome.ABORTED: ("cancelled", "TOOL_ABORTED"),
    ToolOutcome.UNKNOWN: ("unknown", "TOOL_OUTCOME_UNKNOWN"),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_a_tool_that_does_not_succeed_is_told_by_one_word(
    tmp_path: Path, model: ModelServer, outcome: ToolOutcome
) -> None:
    tool = RecordingTool("rec", result=ToolResult(f"no {CANARY}", is_error=True, outcome=outcome))
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        model.answer(calls_answer(("REC", {})), text_answer("done"))
        await service.finish()
        [finished] = [record for record in await records(service, kind="AUDIT_KIND_TOOL") if record.code]
    [(_, *told, _)] = acts([finished])
    assert tuple(told) == OUTCOMES[outcome]
    assert finished.tool_name == "rec"


async def test_a_tool_that_a_model_made_up_has_no_name(service: RunningService, model: ModelServer) -> None:
    model.answer(calls_answer((f"tool_{CANARY}", {})), text_answer("done"))
    await service.finish()
    tools = await records(service, kind="AUDIT_KIND_TOOL")
    assert [record.tool_name for record in tools] == ["unknown", "unknown"]
    assert acts(tools)[1][1:3] == ("failed", "TOOL_ERROR")


async def test_every_end_of_a_run_has_its_status_and_why(tmp_path: Path, model: ModelServer) -> None:
    hold = asyncio.Event()
    async with running_service(tmp_path / "home", model=model) as service:
        model.answer(failure(400, {"error": {"message": CANARY}}))
        await service.finish()
        model.answer(Answer([delta(content="..."), hold]))
        timeout = agent_pb2.AgentRequest(message="m", model="mock/any", session_key="late")
        timeout.timeout.FromMilliseconds(50)
        late = await service.agent.Agent(timeout)
        await service.wait(late.run_id)
        model.answer(Answer([delta(content="..."), hold]))
        running = await service.accept(session_key="s")
        queued = await service.accept(session_key="s")
        await service.agent.Abort(agent_pb2.AbortRequest(run_id=queued.run_id, reason=CANARY))
        await service.agent.Abort(agent_pb2.AbortRequest(run_id=running.run_id, reason=CANARY))
        hold.set()
        ends = [record for record in await records(service) if record.action == admin_pb2.AUDIT_ACTION_RUN_FINISHED]
        assert acts(ends) == [
            ("run_finished", "failed", "PROVIDER_REQUEST_REJECTED", "agent"),
            ("run_finished", "timed_out", "RUN_DEADLINE", "service"),
            ("run_finished", "cancelled", "rpc", "caller"),
            ("run_finished", "cancelled", "rpc", "caller"),
        ]
        # The queued one never began.
        assert [record.action for record in await records(service, run_id=queued.run_id)] == [
            admin_pb2.AUDIT_ACTION_RUN_FINISHED
        ]
        assert await records(service, run_id=running.run_id) == await records(
            service, run_id=running.run_id, session_key="S", agent_id="Main"
        )


async def test_nothing_that_anybody_said_is_in_the_ledger(tmp_path: Path, model: ModelServer) -> None:
    home = tmp_path / "home"
    said: dict[str, Any] = {
        name: f"{CANARY}-{name}" for name in ("to", "account_id", "thread_id", "label", "extra_system_prompt")
    }
    tool = RecordingTool("rec", result=ToolResult(f"result {CANARY}", is_error=True))
    async with running_service(home, model=model, toml=MESSAGES, tools=[tool]) as service:
        model.answer(
            calls_answer(
                ("rec", {"path": f"/{CANARY}", "url": f"http://{CANARY}/"}),
                ("exec", {"command": f"echo {CANARY}"}),
                (CANARY, {}),
                text=CANARY,
            ),
            failure(400, {"error": {"message": CANARY}}),
        )
        request = agent_pb2.AgentRequest(
            message=CANARY, model="mock/any", session_key="talk", channel="mail", metadata={CANARY: CANARY}, **said
        )
        request.attachments.add(name=f"{CANARY}.txt", mime_type="text/plain", data=CANARY.encode())
        request.provenance.source_session_key = CANARY
        accepted = await service.agent.Agent(request)
        await service.wait(accepted.run_id)
        found = await records(service)
        assert len(found) == 9
        assert CANARY not in str(found)
    assert len(rows(home)) == 9
    assert CANARY not in json.dumps(rows(home))


async def test_a_message_is_recorded_without_its_session_and_with_pseudonyms(
    tmp_path: Path, model: ModelServer
) -> None:
    home = tmp_path / "home"
    places = {"channel": "mail", "to": "peer-1", "account_id": "account-1", "thread_id": "peer-1"}
    async with running_service(home, model=model, toml=MESSAGES) as service:
        accepted = await service.accept(session_key="a", idempotency_key="k", **places)
        await service.accept(session_key="a", idempotency_key="k", **places)
        await service.accept(session_key="b", channel="chat")
        found = await records(service, kind="AUDIT_KIND_MESSAGE", direction="AUDIT_DIRECTION_INBOUND")
        assert acts(found) == [
            ("message_inbound_processed", "succeeded", "", "caller"),
            ("message_inbound_processed", "observed", "DUPLICATE", "caller"),
            ("message_inbound_processed", "succeeded", "", "caller"),
        ]
        assert {(record.session_key, record.session_id) for record in found} == {("", "")}
        assert [record.run_id == accepted.run_id for record in found] == [True, True, False]
        assert len({record.event_id for record in found}) == 3
        first, second, other = found
        assert (first.account, first.conversation, first.thread) == (
            second.account,
            second.conversation,
            second.thread,
        )
        # The same identifier of another kind has another pseudonym.
        assert len({first.account, first.conversation, first.thread, ""}) == 4
        assert (other.account, other.conversation, other.thread) == ("", "", "")
        assert await records(service, channel="mail") == [first, second]
        assert await records(service, direction="AUDIT_DIRECTION_OUTBOUND") == []
        assert await records(service, session_key="a", kind="AUDIT_KIND_MESSAGE") == []
    async with running_service(home, model=model, toml=MESSAGES) as service:
        await service.accept(session_key="a", **places)
        again = (await records(service, kind="AUDIT_KIND_MESSAGE"))[-1]
        assert (again.account, again.conversation, again.thread) == (first.account, first.conversation, first.thread)


async def test_after_the_key_of_the_pseudonyms_is_lost_no_message_is_recorded(
    tmp_path: Path, model: ModelServer
) -> None:
    home = tmp_path / "home"
    async with running_service(home, model=model, toml=MESSAGES) as service:
        await service.finish(to="peer-1")
    with closing(sqlite3.connect(home / "laneway.db")) as database, database:
        database.execute("DELETE FROM audit_keys")
    async with running_service(home, model=model, toml=MESSAGES) as service:
        await service.finish(to="peer-1")
        assert len(await records(service, kind="AUDIT_KIND_MESSAGE")) == 1
        assert len(await records(service, kind="AUDIT_KIND_RUN")) == 4
    assert rows(home, "SELECT * FROM audit_keys") == []


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("", {"run"}),
        ('[audit]\nmessages = "off"\n', {"run"}),
        ('[audit]\nmessages = "direct"\n', {"run", "direct"}),
        (MESSAGES, {"run", "direct", "group"}),
        ('[audit]\nenabled = false\nmessages = "all"\n', set()),
    ],
)
async def test_the_settings_say_what_is_recorded(
    tmp_path: Path, model: ModelServer, toml: str, expected: set[str]
) -> None:
    async with running_service(tmp_path / "home", model=model, toml=toml) as service:
        await service.finish(session_key="agent:main:mail:direct:peer", channel="direct")
        await service.finish(session_key="agent:main:mail:group:peers", channel="group")
        found = await records(service)
    assert {record.channel or "run" for record in found} == expected


async def test_what_was_recorded_before_the_ledger_was_switched_off_can_be_read_until_it_is_old(
    tmp_path: Path, model: ModelServer
) -> None:
    home, off = tmp_path / "home", "[audit]\nenabled = false\n"
    async with running_service(home, model=model) as service:
        await service.finish()
    async with running_service(home, model=model, toml=off) as service:
        await service.finish()
        assert len(await records(service)) == 2
    with closing(sqlite3.connect(home / "laneway.db")) as database, database:
        database.execute("UPDATE audit_records SET at = at - ?", (31 * 86_400 * 1_000_000,))
    gate = HoldingGate(lambda command: type(command).__name__ == "PruneAudit", after=True)
    async with running_service(home, model=model, toml=off, seams=Seams(commit_gate=gate)) as service:
        await gate.reached()
        gate.release()
        assert await records(service) == []
        assert rows(home) == []


async def test_pages_stay_as_they_are_while_records_come_in(service: RunningService) -> None:
    for _ in range(3):
        await service.finish()
    first = await service.admin.ListAuditRecords(admin_pb2.ListAuditRecordsRequest(page_size=4))
    await service.finish()
    request = admin_pb2.ListAuditRecordsRequest(page_size=4, page_token=first.next_page_token)
    second = await service.admin.ListAuditRecords(request)
    assert [record.sequence for record in [*first.records, *second.records]] == [6, 5, 4, 3, 2, 1]
    assert second.next_page_token == ""


async def test_a_time_is_in_the_list_that_begins_or_ends_with_it(service: RunningService) -> None:
    for _ in range(3):
        await service.finish()
    found = await records(service)
    middle = found[2].time
    assert await records(service, after=middle) == [record for record in found if _us(record) >= _us(found[2])]
    assert await records(service, before=middle) == [record for record in found if _us(record) <= _us(found[2])]
    assert {record.status for record in await records(service, status="AUDIT_STATUS_STARTED")} == {1}


def _us(record: admin_pb2.AuditRecord) -> int:
    return int(record.time.ToMicroseconds())


async def test_a_tenant_sees_its_own_records_only(service: RunningService) -> None:
    for tenant in ("one", "two", "two"):
        request = agent_pb2.AgentRequest(message="m", model="mock/any", session_key="s")
        metadata = ((TENANT_KEY, tenant),)
        accepted = await service.agent.Agent(request, metadata=metadata)
        await service.agent.Wait(agent_pb2.WaitRequest(run_id=accepted.run_id), metadata=metadata)
    assert [len(await records(service, tenant)) for tenant in ("one", "two", "three")] == [2, 4, 0]
    assert [record.sequence for record in await records(service, "two")] == [1, 2, 3, 4]
    mine = (await records(service, "one"))[0].run_id
    assert await records(service, "two", run_id=mine) == []
    token = (
        await service.admin.ListAuditRecords(
            admin_pb2.ListAuditRecordsRequest(page_size=1), metadata=((TENANT_KEY, "one"),)
        )
    ).next_page_token
    foreign = admin_pb2.ListAuditRecordsRequest(page_size=1, page_token=token)
    refusal = await refused(service.admin.ListAuditRecords(foreign, metadata=((TENANT_KEY, "two"),)))
    assert refusal.reason == "PAGE_TOKEN_INVALID"


async def test_records_outlive_their_session(service: RunningService) -> None:
    await service.finish(session_key="s")
    await service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key="s"))
    assert len(await records(service, session_key="s")) == 2


@asynccontextmanager
async def with_gate(tmp_path: Path, model: ModelServer, gate: Any, toml: str = "") -> AsyncIterator[RunningService]:
    async with running_service(tmp_path / "home", model=model, toml=toml, seams=Seams(commit_gate=gate)) as service:
        yield service


async def test_a_ledger_that_cannot_be_written_ends_and_delays_no_run(tmp_path: Path, model: ModelServer) -> None:
    class Refusing(FailingGate):
        def before_commit(self, commands: Any) -> None:
            self.is_failing = any(isinstance(command, AppendAudit) for command in commands)
            super().before_commit(commands)

    gate = Refusing()
    async with with_gate(tmp_path, model, gate) as service:
        for _ in range(2):
            ended = await service.finish()
            assert ended.state == run_pb2.RUN_STATE_SUCCEEDED
            assert await records(service) == []
    assert gate.failures == 2


async def test_a_restart_adds_no_second_start_and_tells_what_the_first_one_left_open(
    tmp_path: Path, model: ModelServer
) -> None:
    hold = asyncio.Event()
    home = tmp_path / "home"
    async with running_service(home, model=model, toml="[drain]\ntimeout_s = 0\npark_s = 0\n") as service:
        model.answer(Answer([delta(content="..."), hold]))
        accepted = await service.accept()
        call = service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=accepted.run_id, after_seq=0))
        async for event in call:
            if event.WhichOneof("payload") == "assistant":
                break
        call.cancel()
    hold.set()
    async with running_service(home, model=model) as service:
        await service.wait(accepted.run_id)
        assert acts(await records(service)) == [
            ("run_started", "started", "", "agent"),
            ("run_finished", "succeeded", "", "agent"),
        ]
