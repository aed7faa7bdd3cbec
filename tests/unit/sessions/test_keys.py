"""Session keys and agent ids (spec 01, 1.3; R-1.6, R-1.8, R-1.27)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewayd.errors import FieldError
from lanewayd.sessions.keys import agent_of, canonical_key, normal_agent_id, one_off_key


@pytest.mark.parametrize(
    ("text", "agent_id"),
    [
        ("main", "main"),
        ("  Research ", "research"),
        ("a", "a"),
        ("9lives", "9lives"),
        ("with_under-score", "with_under-score"),
        ("Team Alpha!", "team-alpha"),
        ("a..b//c", "a-b-c"),
        ("--edge--", "edge"),
        ("_x", "x"),
        ("_", "main"),
        ("a_", "a_"),
        ("!_x!", "x"),
        ("é", "main"),
        ("", "main"),
        ("   ", "main"),
        ("---", "main"),
        ("x" * 64, "x" * 64),
        ("x" * 65, "x" * 64),
        ("x" * 63 + "!y", "x" * 63),
    ],
)
def test_agent_ids_get_their_normal_form(text: str, agent_id: str) -> None:
    assert normal_agent_id(text) == agent_id


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=100))
def test_a_normal_agent_id_is_its_own_normal_form_and_owns_its_sessions(text: str) -> None:
    agent_id = normal_agent_id(text)
    assert normal_agent_id(agent_id) == agent_id
    assert 1 <= len(agent_id) <= 64
    assert agent_of(canonical_key("chat", agent_id)) == agent_id
    assert agent_of(one_off_key(agent_id, "0190")) == agent_id


@pytest.mark.parametrize(
    ("session_key", "agent_id", "canonical"),
    [
        ("main", "", "agent:main:main"),
        ("MAIN", "", "agent:main:main"),
        ("  ", "research", "agent:research:main"),
        ("main", "research", "agent:research:main"),
        ("Support-42", "", "agent:main:support-42"),
        (" Chat ", "research", "agent:research:chat"),
        ("with:colons:inside", "", "agent:main:with:colons:inside"),
        ("Agent:Research:Chat", "", "agent:research:chat"),
        ("agent:research:chat", "research", "agent:research:chat"),
        ("agent:research:a:b:c", "", "agent:research:a:b:c"),
        ("agent:research:run:0190", "", "agent:research:run:0190"),
        ("agent", "", "agent:main:agent"),
        ("agents:x", "", "agent:main:agents:x"),
    ],
)
def test_keys_get_their_canonical_form(session_key: str, agent_id: str, canonical: str) -> None:
    assert canonical_key(session_key, agent_id) == canonical
    assert canonical_key(canonical) == canonical


@pytest.mark.parametrize(
    "session_key",
    ["agent:", "agent:main", "agent::chat", "agent:main:", "agent:main::", "agent: :chat", "agent:-x:chat",
     "agent:a b:chat", "agent:" + "x" * 65 + ":chat"],
)  # fmt: skip
def test_an_agent_key_without_its_parts_is_malformed(session_key: str) -> None:
    with pytest.raises(FieldError) as raised:
        canonical_key(session_key)
    assert (raised.value.code, raised.value.field) == ("SESSION_KEY_MALFORMED", "session_key")


def test_a_key_of_another_agent_is_refused() -> None:
    with pytest.raises(FieldError) as raised:
        canonical_key("agent:research:chat", "main")
    assert (raised.value.code, raised.value.field) == ("FIELD_INVALID", "agent_id")


@settings(deadline=None, derandomize=True)
@given(st.text(min_size=1, max_size=60))
def test_every_key_is_malformed_or_canonical_for_good(session_key: str) -> None:
    try:
        canonical = canonical_key(session_key)
    except FieldError:
        return
    assert canonical_key(canonical) == canonical
    assert canonical == canonical.strip()
