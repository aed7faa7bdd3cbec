"""gemini/encode.py: what the service is sent."""

import base64
import json
import re
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.providers.transcripts import IMAGES, transcripts
from tests.unit.providers.transcripts import answer as an_answer

from lanewayd.messages import (
    AssistantMessage,
    Attachment,
    Message,
    ModelFacts,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from lanewayd.providers.gemini.dialect import Gemini
from lanewayd.providers.gemini.encode import (
    FIRST_USER,
    UNSIGNED_CALL,
    encode_request,
)
from lanewayd.providers.history import MISSING_RESULT
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.request_texts import BLANK_RESULT, BLANK_USER

MODEL = "gemini-3.8-flash"
OLD_MODEL = "gemini-2.5-flash"


def encoded(*messages: Message, model: str = MODEL) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = json.loads(encode_request(ModelRequest(model, "", messages)))["contents"]
    return contents


answer = partial(an_answer, model=MODEL, provider="google")


def test_a_request_has_contents_instruction_and_functions() -> None:
    schema = {"type": "object", "properties": {"p": {"type": "string"}}, "additionalProperties": False}
    dialect = Gemini(new_call_id=lambda: "x")
    tools = (ToolSpec("rec", "Records.", schema), ToolSpec("now", "Tells."))
    request = ModelRequest(MODEL, "Be brief.", (UserMessage("hi"),), tools)
    assert json.loads(dialect.encode(request)) == {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "rec",
                        "description": "Records.",
                        "parameters": {"type": "object", "properties": {"p": {"type": "string"}}},
                    },
                    {"name": "now", "description": "Tells."},
                ]
            }
        ],
    }
    assert list(json.loads(encode_request(ModelRequest(MODEL, " ", (UserMessage("hi"),))))) == ["contents"]


@pytest.mark.parametrize(
    ("model", "path"),
    [
        (MODEL, f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"),
        ("models/x", "/v1beta/models/x:streamGenerateContent?alt=sse"),
        ("tunedModels/a b?#", "/v1beta/tunedModels/a%20b%3F%23:streamGenerateContent?alt=sse"),
        ("\ud800é", "/v1beta/models/%EF%BF%BD%C3%A9:streamGenerateContent?alt=sse"),
    ],
)
def test_the_model_stands_in_the_path(model: str, path: str) -> None:
    assert Gemini(new_call_id=lambda: "x").path(ModelRequest(model, "", ())) == path


def test_the_key_goes_into_its_own_header() -> None:
    dialect = Gemini(new_call_id=lambda: "x")
    assert dialect.headers("k") == {"x-goog-api-key": "k"}
    assert dialect.headers("") == {}


def test_calls_results_and_their_signatures_go_back_as_they_came() -> None:
    contents = encoded(
        UserMessage("u"),
        answer(
            Reasoning("hm", "thought", "dGhv"),
            Text("t", "dGV4"),
            ToolCall("calla", "rec", '{"n": 123456789012345678901}', "c2ln"),
            ToolCall("callb", "rec", "{}"),
        ),
        ToolResultMessage("calla", "rec", "done"),
        ToolResultMessage("callb", "rec", "no", is_error=True),
    )
    args = {"n": 123456789012345678901}
    assert contents[1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True, "thoughtSignature": "dGhv"},
                {"text": "t", "thoughtSignature": "dGV4"},
                {"functionCall": {"id": "calla", "name": "rec", "args": args}, "thoughtSignature": "c2ln"},
                {"functionCall": {"id": "callb", "name": "rec", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "calla", "name": "rec", "response": {"output": "done"}}},
                {"functionResponse": {"id": "callb", "name": "rec", "response": {"error": "no"}}},
            ],
        },
    ]


def test_a_signature_without_text_is_a_part_of_its_own() -> None:
    parts = encoded(UserMessage("u"), answer(Text("t"), Text("", "c2ln"), Text(" ")))[1]["parts"]
    assert parts == [{"text": "t"}, {"text": "", "thoughtSignature": "c2ln"}]


def test_thoughts_without_a_signature_are_not_replayed() -> None:
    assert encoded(UserMessage("u"), answer(Reasoning("hm"), Text("t")))[1]["parts"] == [{"text": "t"}]
    assert encoded(UserMessage("u"), answer(Reasoning("hm")), UserMessage("v")) == [
        {"role": "user", "parts": [{"text": "u"}, {"text": "v"}]}
    ]


def test_signatures_of_another_model_or_of_another_kind_are_left_out() -> None:
    blocks = (Reasoning("hm", "thought", "c2ln"), Text("t", "c2ln"), ToolCall("a", "rec", "{}", "c2ln"))
    for signed in (answer(*blocks, model=OLD_MODEL), answer(Text("t", '{"x":1}'), ToolCall("a", "rec", "{}", "ü==="))):
        assert encoded(UserMessage("u"), signed)[1]["parts"] == [
            {"text": "t"},
            {"functionCall": {"id": "a", "name": "rec", "args": {}}, "thoughtSignature": UNSIGNED_CALL},
        ]


@pytest.mark.parametrize(
    ("model", "is_marked"),
    [
        ("gemini-3-pro-preview", True),
        ("gemini-3.8-flash", True),
        ("models/Gemini-4-argon", True),
        ("gemini-flash-latest", True),
        ("gemini-2.5-pro", False),
        ("gemini-robotics-er-1.5-preview", False),
        ("gemma-3-27b-it", False),
        ("m", False),
    ],
)
def test_the_first_call_without_a_signature_says_so_where_one_is_demanded(model: str, is_marked: bool) -> None:
    calls = answer(ToolCall("a", "rec", "{}"), ToolCall("b", "rec", "{}"), model="other")
    signatures = [part.get("thoughtSignature") for part in encoded(UserMessage("u"), calls, model=model)[1]["parts"]]
    assert signatures == [UNSIGNED_CALL if is_marked else None, None]


def test_turns_alternate_and_the_first_is_the_users() -> None:
    contents = encoded(
        answer(Text("a")),
        answer(Text("b"), ToolCall("c", "rec", "{}", "c2ln")),
        ToolResultMessage("c", "rec", "r"),
        UserMessage("u"),
        UserMessage(" "),
        answer(Text("z")),
    )
    assert [(content["role"], len(content["parts"])) for content in contents] == [
        ("user", 1),
        ("model", 3),
        ("user", 3),
        ("model", 1),
    ]
    assert contents[0]["parts"] == [{"text": FIRST_USER}]
    assert contents[2]["parts"][1:] == [{"text": "u"}, {"text": BLANK_USER}]
    assert encoded() == [{"role": "user", "parts": [{"text": BLANK_USER}]}]


def test_missing_results_are_made_up_and_orphans_and_failed_answers_left_out() -> None:
    failed = AssistantMessage((Text("broken"),), "google", MODEL, StopReason.ERROR)
    calls = answer(ToolCall("c", "rec", "{}", "c2ln"))
    contents = encoded(UserMessage("u"), ToolResultMessage("x", "rec", "r"), failed, calls, UserMessage("v"))
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    assert contents[2]["parts"] == [
        {"functionResponse": {"id": "c", "name": "rec", "response": {"error": MISSING_RESULT}}},
        {"text": "v"},
    ]


def test_blank_results_illegal_names_and_broken_arguments_are_made_legal() -> None:
    calls = answer(*(ToolCall(f"c{n}", "do it!", text) for n, text in enumerate(("", "[1]", "{", '{"a":NaN}'))))
    results = (ToolResultMessage(f"c{n}", "do it!", " ") for n in range(4))
    contents = encoded(UserMessage("u"), calls, *results)
    assert [part["functionCall"]["args"] for part in contents[1]["parts"]] == [{}] * 4
    assert {part["functionCall"]["name"] for part in contents[1]["parts"]} == {"do_it_"}
    assert contents[2]["parts"][0]["functionResponse"]["response"] == {"output": BLANK_RESULT}


def test_ids_are_alphanumeric_short_and_told_apart_in_the_whole_request() -> None:
    ids = ("", "a_b", "ab", "x" * 60, "x" * 61, "ab")
    history: list[Message] = [UserMessage("u")]
    for _ in range(2):
        history.append(answer(*(ToolCall(call_id, "rec", "{}", "c2ln") for call_id in ids)))
        history += [ToolResultMessage(call_id, "rec", f"r{n}") for n, call_id in enumerate(ids)]
    contents = encoded(*history)
    sent = [part["functionCall"]["id"] for content in contents[1::2] for part in content["parts"]]
    answered = [part["functionResponse"]["id"] for content in contents[2::2] for part in content["parts"]]
    assert sent == answered
    assert len({*sent}) == len(sent) == 12
    assert all(re.fullmatch(r"[A-Za-z0-9]{1,40}", wire_id) for wire_id in sent)
    # A longer conversation begins with the same bytes: that is what the service's cache goes by.
    assert encoded(*history[:8]) == contents[:3]


def test_lone_surrogates_become_replacement_characters() -> None:
    escaped = answer(ToolCall("c", "rec", '{"a":"\\ud83d", "b":"\\u00e9"}', "c2ln"))
    contents = encoded(UserMessage("a\ud83db \U0001f600"), escaped)
    assert contents[0]["parts"] == [{"text": "a\ufffdb \U0001f600"}]
    assert contents[1]["parts"][0]["functionCall"]["args"] == {"a": "\ufffd", "b": "\u00e9"}


def transcript_of(contents: list[dict[str, Any]], model: str) -> tuple[tuple[Message, ...], dict[str, bytes]]:
    """What was said in a request, with the contents of its images; no turn is completed, so no image is too old."""
    messages: list[Message] = []
    images: dict[str, bytes] = {}
    for content in contents:
        if content["role"] == "model":
            blocks = tuple(map(_block, content["parts"]))
            messages.append(AssistantMessage(blocks, "google", model, StopReason.TOOL_USE))
            continue
        for part in content["parts"]:
            if "functionResponse" in part:
                response = part["functionResponse"]
                [(kind, text)] = response["response"].items()
                messages.append(ToolResultMessage(response["id"], response["name"], text, kind == "error"))
            elif "inlineData" in part:
                data = part["inlineData"]["data"]
                images[data] = base64.b64decode(data, validate=True)
                messages.append(UserMessage("", (Attachment("i", part["inlineData"]["mimeType"], data, 1),)))
            else:
                messages.append(UserMessage(part["text"]))
    return tuple(messages), images


def _block(part: dict[str, Any]) -> Text | Reasoning | ToolCall:
    signature = part.get("thoughtSignature", "")
    if "functionCall" in part:
        call = part["functionCall"]
        return ToolCall(call["id"], call["name"], json.dumps(call["args"]), signature)
    if part.get("thought"):
        return Reasoning(part["text"], "thought", signature)
    return Text(part["text"], signature)


def check_contents(contents: list[dict[str, Any]], model: str) -> None:
    """What a strict service asks of a conversation."""
    roles = [("user", "model")[number % 2] for number in range(len(contents))]
    assert [content["role"] for content in contents] == roles
    ids: set[str] = set()
    for number, content in enumerate(contents):
        assert content["parts"]
        for part in content["parts"]:
            assert part.get("text", "x").strip() or part.get("thoughtSignature")
            assert re.fullmatch(r"[A-Za-z0-9+/_]+={0,2}", part.get("thoughtSignature", "x"))
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        for call in calls:
            assert re.fullmatch(r"[A-Za-z0-9]{1,40}", call["id"])
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["name"])
            assert isinstance(call["args"], dict)
            assert call["id"] not in ids
            ids.add(call["id"])
        if calls:
            answers = [part["functionResponse"] for part in contents[number + 1]["parts"][: len(calls)]]
            assert [(each["id"], each["name"]) for each in answers] == [(call["id"], call["name"]) for call in calls]
            first = next(part for part in content["parts"] if "functionCall" in part)
            assert model == OLD_MODEL or first["thoughtSignature"]
    responses = sum("functionResponse" in part for content in contents for part in content["parts"])
    assert responses == len(ids)


@settings(max_examples=150, deadline=None)
@given(transcripts([MODEL, OLD_MODEL]), st.sampled_from([MODEL, OLD_MODEL]), st.booleans())
def test_any_transcript_makes_a_legal_request_and_repairing_that_changes_nothing(
    messages: tuple[Message, ...], model: str, accepts_images: bool
) -> None:
    facts = ModelFacts(accepts_images=accepts_images)
    body = encode_request(ModelRequest(model, "", messages, facts=facts, contents=IMAGES))
    contents = json.loads(body.decode())["contents"]
    check_contents(contents, model)
    assert accepts_images or b'"inlineData"' not in body
    repaired, images = transcript_of(contents, model)
    again = encode_request(ModelRequest(model, "", repaired, facts=facts, contents=images))
    assert json.loads(again)["contents"] == contents
