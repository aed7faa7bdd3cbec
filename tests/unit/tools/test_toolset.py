import asyncio
from pathlib import Path

import pytest
from tests.fakes.recording_tool import RecordingTool

from lanewayd.messages import ToolCall, ToolOutcome
from lanewayd.tools.interface import PreparedCall, ToolContext, ToolResult
from lanewayd.tools.toolset import ToolShelf

SHELF = ToolShelf([RecordingTool(name) for name in ("write", "read", "exec", "Edit")])


def names(allow: list[str], deny: list[str]) -> list[str]:
    return [spec.name for spec in SHELF.select(allow, deny).specs]


@pytest.mark.parametrize(
    ("allow", "deny", "left"),
    [
        ([], [], ["Edit", "exec", "read", "write"]),
        (["write", "read"], [], ["read", "write"]),
        (["READ ", "unknown"], [], ["read"]),
        (["bash"], [], ["exec"]),
        ([], ["bash"], ["Edit", "read", "write"]),
        (["read", "exec"], ["exec"], ["read"]),
        (["group:fs"], ["w*"], ["Edit", "read"]),
        (["group:runtime"], [], ["exec"]),
        (["*"], ["group:fs"], ["exec"]),
        ([], ["*"], []),
        (["[r]ead"], [], []),
    ],
)
def test_a_run_gets_what_its_lists_leave_in_one_order(allow: list[str], deny: list[str], left: list[str]) -> None:
    assert names(allow, deny) == left


@pytest.mark.parametrize(
    ("allow", "deny", "is_emptied"),
    [
        (["unknown"], [], True),
        (["read"], ["read"], True),
        (["read"], [], False),
        ([], [], False),
        ([], ["*"], False),
    ],
)
def test_a_list_of_what_is_allowed_that_leaves_nothing_is_told(
    allow: list[str], deny: list[str], is_emptied: bool
) -> None:
    assert SHELF.select(allow, deny).is_emptied_by_policy is is_emptied


def test_the_order_does_not_depend_on_registration() -> None:
    other = ToolShelf([RecordingTool(name) for name in ("read", "Edit", "exec", "write")])
    assert [spec.name for spec in other.select().specs] == names([], [])


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        ToolShelf([RecordingTool("exec"), RecordingTool("Bash")])


def test_a_call_is_prepared_whatever_the_case_of_its_name() -> None:
    prepared = SHELF.select().prepare(ToolCall("c1", "Bash", '{"a": 1}'))
    assert isinstance(prepared, PreparedCall)
    assert prepared.tool.spec.name == "exec"
    assert prepared.arguments == {"a": 1}


@pytest.mark.parametrize("name", ["nothing", "read", "\ud83d" * 500])
def test_an_unknown_or_removed_tool_is_an_error_that_names_the_others(name: str) -> None:
    refused = SHELF.select(["write"]).prepare(ToolCall("c1", name, "{}"))
    assert isinstance(refused, ToolResult)
    assert refused.is_error
    assert refused.outcome is ToolOutcome.ERROR
    assert refused.text.endswith("Tools: write.")
    assert len(refused.text.encode()) < 2_000


def test_arguments_that_do_not_fit_are_an_error_result() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    refused = ToolShelf([RecordingTool("count", schema=schema)]).select().prepare(ToolCall("c1", "count", "{}"))
    assert isinstance(refused, ToolResult)
    assert refused.is_error
    assert "n: is required but missing" in refused.text


async def result_of(tool: RecordingTool, context: ToolContext) -> ToolResult:
    prepared = ToolShelf([tool]).select().prepare(ToolCall("c1", tool.spec.name, "{}"))
    assert isinstance(prepared, PreparedCall)
    return await prepared.tool.run(prepared.arguments, context)


async def test_b072_a_tool_that_returns_nothing_has_an_empty_result(context: ToolContext) -> None:
    assert await result_of(RecordingTool(result=None), context) == ToolResult("(no output)")


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError(), SystemExit(3)])
async def test_b072_what_a_tool_raises_reaches_the_loop_that_makes_a_result_of_it(
    context: ToolContext, error: BaseException
) -> None:
    # SystemExit in a task of its own would end the event loop: it is raised in this task.
    with pytest.raises(type(error)):
        await result_of(RecordingTool(result=error), context)


async def test_any_result_is_valid_text_within_the_limits(workspace: Path, context: ToolContext) -> None:
    result = await result_of(RecordingTool(result=ToolResult("a\ud83d\x00" * 20_000, is_error=True)), context)
    assert result.text.startswith("a\ufffd\ufffda")
    assert len(result.text) <= 16_000
    assert result.outcome is ToolOutcome.ERROR
