"""What a model is shown of the files that came with messages."""

from base64 import b64decode
from dataclasses import replace

import pytest

from lanewayd.messages import (
    MAX_TEXT_FILE_BYTES,
    AssistantMessage,
    Attachment,
    Message,
    ModelFacts,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from lanewayd.providers.images import image_base64, shown_messages
from lanewayd.providers.interface import ModelRequest

EYES = ModelFacts(accepts_images=True)
CAT = Attachment("cat.png", "image/png", "hash-of-cat", 3)
CONTENTS = {CAT.blob_hash: b"\x89PN"}


def asked(*messages: Message, facts: ModelFacts = EYES, contents: dict[str, bytes] = CONTENTS) -> ModelRequest:
    return ModelRequest("m", "", messages, facts=facts, contents=contents)


def answered(stop: StopReason = StopReason.STOP) -> Message:
    return AssistantMessage((Text("fine"),), "acme", "m", stop)


def shows_images(request: ModelRequest) -> list[bool]:
    return [bool(message.attachments) for message in shown_messages(request) if isinstance(message, UserMessage)]


def test_an_image_stays_with_its_message_for_a_model_that_takes_images() -> None:
    request = asked(UserMessage("look", (CAT,)))
    assert shown_messages(request) == request.messages
    assert b64decode(image_base64(request, CAT)) == CONTENTS[CAT.blob_hash]


def test_messages_without_attachments_are_the_same_object() -> None:
    request = asked(UserMessage("a"), answered(), UserMessage("b"))
    assert shown_messages(request) is request.messages


@pytest.mark.parametrize(
    ("attachment", "facts", "contents", "note"),
    [
        (CAT, ModelFacts(), CONTENTS, "[cat.png: attached image, not shown because this model does not take images]"),
        (CAT, EYES, {}, "[cat.png: attached image, its content is not available]"),
        (CAT, EYES, {CAT.blob_hash: b""}, "[cat.png: attached image, its content is not available]"),
        (
            Attachment("a\n b.pdf", "application/pdf", "h", 70_000),
            EYES,
            {"h": b"x"},
            "[a b.pdf: attached file, application/pdf, 70000 bytes]",
        ),
        (Attachment(" ", "", "h", 1), EYES, {"h": b"x"}, "[attachment: attached file, type not known, 1 bytes]"),
    ],
)
def test_what_cannot_be_shown_is_named_in_the_text(
    attachment: Attachment, facts: ModelFacts, contents: dict[str, bytes], note: str
) -> None:
    for text, expected in (("look", f"look\n{note}"), (" ", note)):
        request = asked(UserMessage(text, (attachment,)), facts=facts, contents=contents)
        assert shown_messages(request) == (UserMessage(expected),)


@pytest.mark.parametrize(
    ("content", "fence"), [(b"a = 1", "```"), (b"```py\na = 1\n```", "````"), (b"\xff", "```"), (b"", "```")]
)
def test_a_text_file_stands_in_the_text_in_a_block_that_names_it(content: bytes, fence: str) -> None:
    attachment = Attachment("a.py", "text/x-python", "h", len(content))
    request = asked(UserMessage("read this", (attachment,)), facts=ModelFacts(), contents={"h": content})
    (shown,) = shown_messages(request)
    text = content.decode("utf-8", "replace")
    assert shown == UserMessage(f"read this\n[a.py]\n{fence}\n{text}\n{fence}")
    assert shown_messages(replace(request, messages=(shown,))) == (shown,)


def test_a_text_file_too_long_for_a_prompt_is_only_named() -> None:
    attachment = Attachment("a.txt", "text/plain", "h", MAX_TEXT_FILE_BYTES + 1)
    (shown,) = shown_messages(asked(UserMessage("read this", (attachment,)), contents={"h": b"x"}))
    assert shown == UserMessage("read this\n[a.txt: attached file, text/plain, 262145 bytes]")


def test_images_of_the_current_and_the_last_three_completed_turns_are_shown() -> None:
    look: Message = UserMessage("look", (CAT,))
    request = asked(*([look, answered()] * 4), look)
    assert shows_images(request) == [False, True, True, True, True]
    first = shown_messages(request)[0]
    assert first == UserMessage("look\n[cat.png: attached image, already processed]")


def test_a_turn_that_goes_on_with_tools_is_the_current_one() -> None:
    look: Message = UserMessage("look", (CAT,))
    calls = AssistantMessage((ToolCall("c", "t", "{}"),), "acme", "m", StopReason.TOOL_USE)
    request = asked(*([look, answered()] * 3), look, calls, ToolResultMessage("c", "t", "r"))
    assert shows_images(request) == [True] * 4


@pytest.mark.parametrize("stop", [StopReason.ERROR, StopReason.ABORTED, StopReason.TOOL_USE])
def test_turns_without_a_finished_answer_do_not_count(stop: StopReason) -> None:
    look: Message = UserMessage("look", (CAT,))
    request = asked(look, answered(), *([look, answered(stop)] * 4), look)
    assert shows_images(request) == [True] * 6


def test_a_family_may_take_fewer_types() -> None:
    request = asked(UserMessage("look", (CAT,)))
    note = "[cat.png: attached image, not shown because this model does not take image/png]"
    assert shown_messages(request, {"image/jpeg"}) == (UserMessage(f"look\n{note}"),)


def test_showing_twice_changes_nothing() -> None:
    note = Attachment("n.txt", "text/plain", "h", 1)
    request = asked(*([UserMessage("look", (CAT, note)), answered()] * 5), UserMessage(" ", (note, CAT)))
    once = shown_messages(request)
    assert shown_messages(asked(*once)) == once
