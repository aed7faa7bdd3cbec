"""What killed servers leave behind in processes is ended by the next start, before it serves (D-2)."""

from pathlib import Path

import pytest
from tests.fakes.model_answers import calls_answer
from tests.fakes.model_server import ModelServer
from tests.processes.conftest import MakeServer
from tests.processes.scale import scaled

from laneway.v1 import event_pb2, run_pb2

pytestmark = pytest.mark.timeout(600)

# One child ignores TERM and outlives its parents; both say that they are there.
COMMAND = """sh -c '(trap "" TERM; echo deaf; sleep 300) & echo ready; sleep 300'"""
CALLS_A_KILL = 5


def _alive(run_ids: list[str]) -> list[str]:
    """Command lines of the living processes that carry the run's id. /proc gives no event for a process of others."""
    marks = [f"LANEWAY_RUN_ID={run_id}".encode() for run_id in run_ids]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if any(mark in (folder / "environ").read_bytes() for mark in marks):
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def _says_both(event: event_pb2.Event) -> bool:
    text = event.tool.result.text
    return event.tool.phase == event_pb2.TOOL_PHASE_UPDATE and "deaf" in text and "ready" in text


async def test_nothing_of_a_killed_server_lives_when_the_next_one_serves(
    make_server: MakeServer, model: ModelServer
) -> None:
    server = make_server(is_plain=True)
    await server.start()
    for _ in range(scaled(4, 20)):
        run_ids = []
        for number in range(CALLS_A_KILL):
            model.answer(calls_answer(("exec", {"command": COMMAND})), model=f"exec{number}")
            run_ids.append((await server.accept("go", model=f"mock/exec{number}")).run_id)
        for run_id in run_ids:
            await server.event(run_id, _says_both)
        await server.kill()
        assert len(_alive(run_ids)) >= 2 * CALLS_A_KILL
        await server.start()
        assert _alive(run_ids) == []
        for run_id in run_ids:
            assert (await server.wait(run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
