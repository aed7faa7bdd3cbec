"""The audit ledger over a kill: nothing is told twice, nothing is made up, and what was cut off is unknown."""

import pytest
from tests.fakes.model_answers import calls_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.server_process import ServerProcess
from tests.processes.conftest import MakeServer

from laneway.v1 import admin_pb2, run_pb2

pytestmark = pytest.mark.timeout(180)


async def told(server: ServerProcess) -> list[tuple[str, str, str]]:
    answer = await server.admin.ListAuditRecords(admin_pb2.ListAuditRecordsRequest())
    return [
        (
            admin_pb2.AuditAction.Name(record.action).removeprefix("AUDIT_ACTION_").lower(),
            admin_pb2.AuditStatus.Name(record.status).removeprefix("AUDIT_STATUS_").lower(),
            record.code,
        )
        for record in reversed(answer.records)
    ]


async def test_a_tool_that_a_kill_cut_off_ends_as_unknown_in_a_run_that_started_once(
    make_server: MakeServer, model: ModelServer
) -> None:
    server = make_server()
    await server.start()
    model.answer(calls_answer(("turns", {"token": "a", "then": "hang"})))
    run_id = (await server.accept("go")).run_id
    await server.notice("effect", "a")
    before = [("run_started", "started", ""), ("tool_started", "started", "")]
    assert await told(server) == before
    await server.restart()
    assert (await server.wait(run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    assert await told(server) == [
        *before,
        ("tool_finished", "unknown", "TOOL_OUTCOME_UNKNOWN"),
        ("run_finished", "succeeded", ""),
    ]
