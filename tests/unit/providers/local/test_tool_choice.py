"""Which tools a local model is asked about, and how its answer becomes a call."""

import json
from typing import Any

import jsonschema
import pytest

from lanewayd.messages import (
    AssistantMessage,
    Message,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from lanewayd.providers.local.tool_choice import (
    MOST_CALLS_PER_MESSAGE,
    ToolQuestion,
    is_named,
    question_about,
)

EXEC = ToolSpec(
    "exec",
    "Run a shell command. It has no input.",
    {
        "type": "object",
        "properties": {"command": {"type": "string", "minLength": 1}, "workdir": {"type": "string"}},
        "required": ["command"],
    },
)
READ = ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
NOTE = ToolSpec("note", "Take a note.")
TOOLS = (EXEC, READ, NOTE)


def called(name: str, arguments: dict[str, Any]) -> AssistantMessage:
    call = ToolCall("call_1", name, json.dumps(arguments))
    return AssistantMessage((call,), "local", "m", StopReason.TOOL_USE)


def result(name: str, text: str = "done") -> ToolResultMessage:
    return ToolResultMessage("call_1", name, text)


def asked(*messages: Message, tools: tuple[ToolSpec, ...] = TOOLS, chooses: bool = False) -> ToolQuestion | None:
    return question_about(tools, messages, chooses_by_itself=chooses)


def names(question: ToolQuestion | None) -> list[str]:
    return [tool.name for tool in question.tools] if question is not None else []


@pytest.mark.parametrize(
    "text",
    [
        "Use the tool exec to run date",
        "use exec to run date",
        "Please call exec with: date",
        "the exec tool should run date",
        "EXEC tool: date",
        "run date with exec.",
        "Run date with `exec` please",
        "using the `exec` tool, run date",
    ],
)
def test_a_message_can_name_a_tool(text: str) -> None:
    assert is_named("exec", text)


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("write", "Write a poem about the sea."),
        ("read", "Have you read this?"),
        ("exec", "what does exec mean in Python"),
        ("exec", "use executables"),
        ("read", "with read and write access"),
        ("edit", "I use edits"),
        ("a.b", "use axb"),
    ],
)
def test_the_common_word_is_not_the_tool(tool: str, text: str) -> None:
    assert not is_named(tool, text)


def test_a_tool_that_is_named_must_be_used() -> None:
    question = asked(UserMessage("hi"), UserMessage("Use the tool exec to run date"))
    assert names(question) == ["exec"]
    assert question is not None
    assert not question.may_decline


def test_a_small_model_is_not_asked_when_no_tool_is_named() -> None:
    assert asked(UserMessage("What time is it?")) is None


def test_a_model_that_chooses_is_asked_about_all_tools_and_may_decline() -> None:
    question = asked(UserMessage("What time is it?"), chooses=True)
    assert names(question) == ["exec", "read", "note"]
    assert question is not None
    assert question.may_decline


def test_a_tool_named_in_an_earlier_message_is_over() -> None:
    answer = AssistantMessage((Text("It is late."),), "local", "m", StopReason.STOP)
    assert (
        asked(UserMessage("Use exec: date"), called("exec", {}), result("exec"), answer, UserMessage("Thanks")) is None
    )


def test_after_the_result_the_answer_is_text() -> None:
    assert asked(UserMessage("Use exec: date"), called("exec", {"command": "date"}), result("exec")) is None


def test_the_second_of_two_named_tools_may_be_declined() -> None:
    question = asked(UserMessage("Use the tool exec, then use read"), called("exec", {}), result("exec"))
    assert names(question) == ["read"]
    assert question is not None
    assert question.may_decline


def test_a_model_that_goes_round_in_circles_is_stopped() -> None:
    rounds: list[Message] = []
    for number in range(MOST_CALLS_PER_MESSAGE):
        assert asked(UserMessage("go"), *rounds, chooses=True) is not None
        rounds += [called("note", {"n": number}), result("note")]
    assert asked(UserMessage("go"), *rounds, chooses=True) is None


def test_without_tools_there_is_no_question() -> None:
    assert asked(UserMessage("use exec"), tools=(), chooses=True) is None


def test_the_schema_takes_offered_tools_with_their_arguments_and_none_only() -> None:
    question = asked(UserMessage("x"), chooses=True)
    assert question is not None
    check = jsonschema.Draft202012Validator(question.schema).is_valid
    assert check({"tool": "exec", "arguments": {"command": "date", "workdir": "/"}})
    assert check({"tool": "none", "arguments": {}})
    assert not check({"tool": "exec", "arguments": {}})
    assert not check({"tool": "other", "arguments": {}})
    assert not check({"tool": "none", "arguments": {"command": "date"}})
    assert not check({"tool": "exec"})


def test_a_tool_that_must_be_used_has_no_way_out_and_no_optional_arguments() -> None:
    question = asked(UserMessage("use exec"))
    assert question is not None
    check = jsonschema.Draft202012Validator(question.schema).is_valid
    assert check({"tool": "exec", "arguments": {"command": "date"}})
    assert not check({"tool": "none", "arguments": {}})
    assert "workdir" not in json.dumps(question.schema)
    assert "none" not in question.instruction
    assert "exec: Run a shell command. Arguments: command" in question.instruction


def test_a_tool_without_required_arguments_keeps_the_optional_ones() -> None:
    question = asked(UserMessage("use the tool read"))
    assert question is not None
    assert "path (optional)" in question.instruction
    assert "path" in json.dumps(question.schema)


def test_an_answer_becomes_a_normal_call() -> None:
    messages = (UserMessage("use exec"),)
    question = asked(*messages)
    assert question is not None
    call = question.call_in('{\n "tool": "exec", "arguments": {"command": "echo ä"}}', messages, call_id="call_9")
    assert call == ToolCall("call_9", "exec", '{"command": "echo ä"}')


@pytest.mark.parametrize(
    "answer",
    [
        '{"tool": "none", "arguments": {}}',
        '{"tool": "unheard_of", "arguments": {}}',
        '{"tool": "exec", "arguments": "date"}',
        '{"tool": "exec"}',
        '{"tool": ["exec"], "arguments": {}}',
        '["exec"]',
        '{"tool": "exec", "argum',
        "",
        "[" * 100_000,
    ],
)
def test_anything_else_is_no_call(answer: str) -> None:
    messages = (UserMessage("x"),)
    question = asked(*messages, chooses=True)
    assert question is not None
    assert question.call_in(answer, messages, call_id="c") is None


def test_a_call_that_was_made_for_the_same_message_is_not_made_again() -> None:
    messages = (UserMessage("x"), called("exec", {"command": "date"}), result("exec"))
    question = asked(*messages, chooses=True)
    assert question is not None
    assert question.call_in('{"tool":"exec","arguments":{"command":"date"}}', messages, call_id="c") is None
    assert question.call_in('{"tool":"exec","arguments":{"command":"ls"}}', messages, call_id="c") is not None
    later = (*messages, UserMessage("again"))
    assert question.call_in('{"tool":"exec","arguments":{"command":"date"}}', later, call_id="c") is not None
