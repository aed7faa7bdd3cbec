"""What is sent to the embedded model's process."""

import json
from dataclasses import replace
from typing import Any

import pytest

from lanewayd.messages import (
    AssistantMessage,
    Attachment,
    Message,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.local.dialect import EMBEDDED_MANNERS, OTHER_MANNERS, LocalChat, LocalManners
from lanewayd.providers.local.plain_messages import FOR_OTHERS, FOR_THE_EMBEDDED_MODEL, Wording, plain_messages

EXEC = ToolSpec("exec", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
CALL = ToolCall("call_1", "exec", '{"command": "{result}"}')
CALLED = AssistantMessage((Text("Well."), CALL), "local", "m", StopReason.TOOL_USE)
RESULT = ToolResultMessage("call_1", "exec", "{tool} said hi\n")


def sent(manners: LocalManners, *messages: Message, tools: tuple[ToolSpec, ...] = ()) -> dict[str, Any]:
    dialect = LocalChat(manners, new_call_id=lambda: "call_new")
    body: dict[str, Any] = json.loads(dialect.encode(ModelRequest("m", "Be brief.", messages, tools)))
    return body


@pytest.mark.parametrize("manners", [EMBEDDED_MANNERS, OTHER_MANNERS])
def test_a_message_is_sent_as_to_every_other_service(manners: LocalManners) -> None:
    body = sent(manners, UserMessage("hi"), tools=() if manners is OTHER_MANNERS else (EXEC,))
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert "tools" not in body
    assert "response_format" not in body


def test_a_question_has_a_schema_in_place_of_tools_and_stands_at_the_end() -> None:
    body = sent(EMBEDDED_MANNERS, UserMessage("use exec"), tools=(EXEC,))
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["schema"]["properties"]["tool"] == {"const": "exec"}
    assert body["messages"][-1]["role"] == "user"
    assert body["messages"][-1]["content"].startswith("use exec\n\nTools:\n- exec")
    assert "tools" not in body


@pytest.mark.parametrize("tools", [(), (EXEC,)])
def test_files_are_named_in_front_of_what_is_asked(tools: tuple[ToolSpec, ...]) -> None:
    note = Attachment("n.txt", "text/plain", "hash", 4)
    body = sent(EMBEDDED_MANNERS, UserMessage("use exec", (note,)), tools=tools)
    assert body["messages"][-1]["content"].startswith("use exec\n[n.txt: attached file, text/plain, 4 bytes]")


def test_calls_and_results_become_text_in_the_wording_of_the_model() -> None:
    for manners, call, said in (
        (
            EMBEDDED_MANNERS,
            "Well.\nI used the tool.",
            'The result is "{tool} said hi". Tell me the result.',
        ),
        (
            OTHER_MANNERS,
            'Well.\n{"tool": "exec", "arguments": {"command": "{result}"}}',
            "The tool exec answered:\n{tool} said hi",
        ),
    ):
        body = sent(manners, UserMessage("use exec"), CALLED, RESULT)
        assert [message["content"] for message in body["messages"][1:]] == ["use exec", call, said]
        assert [message["role"] for message in body["messages"][1:]] == ["user", "assistant", "user"]


def test_what_is_said_about_a_result_is_short() -> None:
    assert "max_tokens" in sent(EMBEDDED_MANNERS, UserMessage("use exec"), CALLED, RESULT)
    assert "max_tokens" not in sent(EMBEDDED_MANNERS, UserMessage("hi"))


def test_a_question_after_a_result_follows_it_without_a_reminder() -> None:
    body = sent(OTHER_MANNERS, UserMessage("x"), CALLED, RESULT, tools=(EXEC,))
    assert "Answer with one JSON object" in body["messages"][-1]["content"]
    wording = Wording("called", "{result}", " REMINDER")
    plain = plain_messages((UserMessage("x"), CALLED, RESULT), wording, reminds=False)
    assert not any("REMINDER" in message.text for message in plain)


def test_the_reminder_follows_only_a_result_that_awaits_its_answer() -> None:
    answer = AssistantMessage((Text("It said hi."),), "local", "m", StopReason.STOP)
    plain = plain_messages(
        (UserMessage("x"), CALLED, RESULT, answer, UserMessage("thanks")), FOR_THE_EMBEDDED_MODEL, reminds=True
    )
    assert not any("Tell me" in message.text for message in plain)
    assert plain[-1] == UserMessage("thanks")


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    plain = plain_messages((UserMessage("x"), CALLED), FOR_OTHERS, reminds=True)
    assert len(plain) == 3
    assert "No result" in plain[-1].text


def test_an_empty_result_is_not_nothing() -> None:
    empty = ToolResultMessage("call_1", "exec", " \n")
    assert plain_messages((UserMessage("x"), CALLED, empty), FOR_OTHERS, reminds=True)[-1].text.endswith("(nothing)")


def test_a_temperature_that_was_asked_for_goes_before_the_models_own_but_not_in_a_question() -> None:
    dialect = LocalChat(EMBEDDED_MANNERS, new_call_id=lambda: "call_new")
    request = ModelRequest("m", "", (UserMessage("hi"),), temperature=0.7, seed=3)
    assert json.loads(dialect.encode(request))["temperature"] == 0.7
    question = replace(request, messages=(UserMessage("use exec"),), tools=(EXEC,))
    body = json.loads(dialect.encode(question))
    assert (body["temperature"], body["seed"]) == (0, 3)
    assert dialect.encode(question).count(b'"temperature"') == 1


def test_an_answer_is_held_to_a_schema_by_the_process_but_not_a_question() -> None:
    dialect = LocalChat(EMBEDDED_MANNERS, new_call_id=lambda: "call_new")
    schema = {
        "type": "object",
        "properties": {"day": {"type": "string", "pattern": "^M", "format": "date"}, "pattern": {"type": "string"}},
    }
    request = ModelRequest("m", "", (UserMessage("hi"),), response_schema=schema)
    assert dialect.has_native_schema(request)
    assert not dialect.has_native_schema(replace(request, response_schema=None))
    asked = json.loads(dialect.encode(request))["response_format"]["json_schema"]
    assert (asked["name"], asked["schema"]["properties"]) == (
        "answer",
        {"day": {"type": "string"}, "pattern": {"type": "string"}},
    )
    question = json.loads(dialect.encode(replace(request, messages=(UserMessage("use exec"),), tools=(EXEC,))))
    assert question["response_format"]["json_schema"]["name"] == "tool_choice"
