"""Ids of tool calls: new ones in a session, and as a strict service takes them."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from lanewayd.messages import AssistantMessage, StopReason, ToolCall, UserMessage
from lanewayd.providers.call_ids import CallIds, NineCharacterIds, WireIds, ids_within_message

ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


def given_to(*call_ids: str, max_chars: int = 64) -> list[str]:
    ids = WireIds(ILLEGAL, max_chars)
    return [ids.give(call_id) for call_id in call_ids]


def test_legal_ids_stay_as_they_are() -> None:
    assert given_to("call_1", "toolu_A-b", "x" * 64) == ["call_1", "toolu_A-b", "x" * 64]


def test_other_ids_stay_recognisable() -> None:
    odd, long = given_to("functions.rec:0", "y" * 80)
    assert odd.startswith("functionsrec0")
    assert long.startswith("y" * 56)


@settings(deadline=None)
@given(st.lists(st.text(max_size=80) | st.sampled_from(["", "a", "a b", "ab"]), max_size=12))
def test_ids_are_legal_unique_and_stay_so(call_ids: list[str]) -> None:
    wire_ids = given_to(*call_ids, max_chars=40)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", wire_id) for wire_id in wire_ids)
    assert len(set(wire_ids)) == len(call_ids)
    assert given_to(*wire_ids, max_chars=40) == wire_ids
    assert given_to(*call_ids[:3], max_chars=40) == wire_ids[:3]


ANY_IDS = st.lists(st.text(max_size=60) | st.sampled_from(["", "a", "call_1", "call_0", "a_1"]), max_size=12)


@settings(deadline=None)
@given(ANY_IDS)
def test_nine_character_ids_are_legal_unique_and_stay_so(call_ids: list[str]) -> None:
    ids, again = NineCharacterIds(), NineCharacterIds()
    wire_ids = [ids.give(call_id) for call_id in call_ids]
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", wire_id) for wire_id in wire_ids)
    assert len(set(wire_ids)) == len(call_ids)
    assert [again.give(wire_id) for wire_id in wire_ids] == wire_ids


@settings(deadline=None)
@given(ANY_IDS, st.sampled_from([None, 40]))
def test_ids_within_a_message_are_told_apart_and_stay_so(call_ids: list[str], max_chars: int | None) -> None:
    wire_ids = ids_within_message(call_ids, max_chars)
    assert all(wire_id.strip() and len(wire_id) <= (max_chars or 100) for wire_id in wire_ids)
    assert len(set(wire_ids)) == len(call_ids)
    assert ids_within_message(wire_ids, max_chars) == wire_ids


def test_ids_of_a_message_that_are_legal_stay_as_they_are() -> None:
    assert ids_within_message(["functions.rec:0", "b c"]) == ["functions.rec:0", "b c"]
    assert ids_within_message(["call_1", "", "call_1"]) == ["call_1", "call_2", "call_1_2"]


def test_the_calls_of_an_answer_get_ids_that_no_call_of_the_session_has() -> None:
    before = AssistantMessage((ToolCall("call_0", "rec", "{}"),), "acme", "m", StopReason.TOOL_USE)
    made_up = iter(["call_0", "new_1", "new_2", "new_3"])
    ids = CallIds([UserMessage("u"), before], lambda: next(made_up))
    assert [ids.claim(call_id) for call_id in ("call_0", " call_1 ", "call_1", " ")] == [
        "new_1",
        "call_1",
        "new_2",
        "new_3",
    ]
