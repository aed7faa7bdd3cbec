"""Which waiting messages make one turn, what it is told, and when it may begin."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.store_commands import a_request

from lanewayd.queueing.inbox import (
    LONGEST_WAIT_FACTOR,
    MAX_LINE_CHARACTERS,
    DroppedMessages,
    QuietWindow,
    WaitingMessage,
    collectable,
    collected_prompt,
    summary_line,
)

HOST = a_request(queue_mode="collect", message="first")
LIKE_HOST = replace(HOST, message="another", label="mine", metadata={"k": "v"}, traceparent="00-1")


def test_messages_that_ask_for_nothing_else_belong_together() -> None:
    assert collectable(HOST, [LIKE_HOST, LIKE_HOST]) == 2
    assert collectable(HOST, []) == 0


@pytest.mark.parametrize(
    "difference",
    [
        {"queue_mode": "followup"},
        {"queue_mode": "interrupt"},
        {"model": "acme/other"},
        {"thinking": "high"},
        {"timeout_s": 5.0},
        {"max_turns": 3},
        {"max_output_tokens": 9},
        {"temperature": 0.5},
        {"seed": 1},
        {"extra_system_prompt": "be brief"},
        {"response_schema_json": "{}"},
        {"tools_allow": ("read",)},
        {"tools_deny": ("exec",)},
        {"lane": "other"},
        {"parent_run_id": "run_1"},
        {"channel": "chat"},
        {"to": "somebody"},
        {"account_id": "a"},
        {"thread_id": "t"},
    ],
)
def test_a_message_that_asks_for_something_else_waits_and_so_does_what_is_behind_it(difference: dict[str, Any]) -> None:
    assert collectable(HOST, [LIKE_HOST, replace(LIKE_HOST, **difference), LIKE_HOST]) == 1


def test_messages_that_want_a_structured_answer_are_never_put_together() -> None:
    host = replace(HOST, response_schema_json='{"type":"object"}')
    assert collectable(host, [replace(host, message="same schema")]) == 0


def test_one_message_alone_is_said_as_it_is() -> None:
    assert collected_prompt([WaitingMessage("run_1", "  as it is\n")], DroppedMessages()) == "  as it is\n"


def test_a_collected_turn_says_each_message_with_its_number_and_its_id() -> None:
    prompt = collected_prompt([WaitingMessage("run_1", "one"), WaitingMessage("run_2", "two")], DroppedMessages())
    assert prompt == (
        "[Messages that came while you were at work]\n\n"
        '---\n1.\n{"message_id": "run_1"}\none\n\n'
        '---\n2.\n{"message_id": "run_2"}\ntwo'
    )


def test_what_was_dropped_is_told_before_the_messages_in_a_line_each() -> None:
    prompt = collected_prompt([WaitingMessage("run_9", "now")], DroppedMessages(3, ("line  \n one", "x" * 500)))
    _, summary, message = prompt.split("\n\n")
    title, heading, first, second = summary.split("\n")
    assert title == "[3 messages were dropped, because more waited than the queue may hold]"
    assert heading == "Summary of the last of them:"
    assert first == "- line one"
    assert second == f"- {'x' * 159}…"
    assert message.endswith("now")


@given(st.text(max_size=400))
def test_a_summary_line_is_one_short_line(text: str) -> None:
    line = summary_line(text)
    assert len(line) <= MAX_LINE_CHARACTERS
    assert line.splitlines() in ([], [line])


def test_each_message_begins_the_quiet_time_again() -> None:
    window = QuietWindow(10.0, 10.0)
    assert window.ends_at(0.5) == 10.5
    assert window.with_message(10.4).ends_at(0.5) == 10.9


def test_a_stream_of_messages_does_not_put_the_turn_off_for_ever() -> None:
    window, now_s = QuietWindow(0.0, 0.0), 0.0
    while now_s < window.ends_at(0.5):
        now_s += 0.4
        window = window.with_message(now_s)
    assert window.ends_at(0.5) == LONGEST_WAIT_FACTOR * 0.5
    assert now_s < LONGEST_WAIT_FACTOR * 0.5 + 0.5
