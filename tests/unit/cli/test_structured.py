"""`laneway agent --schema`, as a process against a service on a real socket."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.fake_service import RUN_ID, FakeService, terminal
from tests.unit.cli.processes import run

from laneway.cli.exits import CliError, ExitCode
from laneway.cli.structured import read_schema
from laneway.outputs import output_of
from laneway.v1 import agent_pb2, run_pb2

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
OUTPUT = {"n": 2, "share": 0.5, "names": ["\u00e4", None, True, {"deep": 1}]}


@pytest.fixture
def schema_file(tmp_path: Path) -> Path:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA))
    return file


def ended(**fields: Any) -> agent_pb2.WaitResponse:
    return agent_pb2.WaitResponse(run_id=RUN_ID, state=run_pb2.RUN_STATE_SUCCEEDED, **fields)


async def test_the_object_is_all_that_is_on_stdout(service: FakeService, address: str, schema_file: Path) -> None:
    service.wait_answers = [ended(output=OUTPUT)]
    called = await run("agent", "hello", "--schema", str(schema_file), "--address", address)
    assert called.code == 0
    assert json.loads(called.out) == OUTPUT
    assert '"n": 2,' in called.out, "an integer is one"
    assert "It says: first line" in called.err
    (request,) = service.agent_requests
    assert dict(request.response_schema)["type"] == "object"


async def test_an_object_that_does_not_fit_into_output_is_printed_as_it_was_said(
    service: FakeService, address: str, schema_file: Path
) -> None:
    service.wait_answers = [ended(payloads=[run_pb2.Payload(text='{"n": 1}')])]
    called = await run("agent", "hello", "--schema", str(schema_file), "--address", address)
    assert (called.code, called.out) == (0, '{"n": 1}\n')


async def test_a_run_that_failed_has_no_object(service: FakeService, address: str, schema_file: Path) -> None:
    service.events = [terminal(1, run_pb2.RUN_STATE_FAILED)]
    called = await run("agent", "hello", "--schema", str(schema_file), "--address", address)
    assert (called.code, called.out, service.wait_requests) == (1, "", [])


async def test_with_json_the_events_are_on_stdout(service: FakeService, address: str, schema_file: Path) -> None:
    called = await run("agent", "hello", "--schema", str(schema_file), "--json", "--address", address)
    assert "accepted" in json.loads(called.out.splitlines()[0])
    assert service.wait_requests == []


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "cannot be read: No such file"), ("{", "holds no JSON:"), ("[1]", "an object is needed")],
)
def test_a_file_without_a_schema_is_a_mistake_in_the_command(tmp_path: Path, content: str | None, says: str) -> None:
    file = tmp_path / "schema.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(CliError, match=says) as refused:
        read_schema(file)
    assert refused.value.exit_code is ExitCode.USAGE


def test_an_answer_without_an_object_has_none() -> None:
    assert output_of(agent_pb2.WaitResponse()) is None
    assert output_of(run_pb2.Run(output={})) == {}
    assert output_of(ended(output=OUTPUT)) == OUTPUT
