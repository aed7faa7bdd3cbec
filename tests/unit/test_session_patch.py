"""SessionPatch: whatever updates come, in whatever order, the last one that names a field decides about it (R-4.12)."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.rpc_rows import make_session

from lanewayd.records import Session, SessionPatch, SessionSettings
from lanewayd.store.session_rows import settings_from_json, settings_json

NOT_SET: dict[str, Any] = {
    "model": "",
    "thinking": "",
    "verbose": "",
    "reasoning": "",
    "trace": None,
    "label": "",
    "pinned": False,
    "archived": False,
}
MARKS = ("label", "pinned", "archived")

texts = st.sampled_from(["", "a", "ü b", '"'])
updates = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("model", "thinking", "verbose", "reasoning", "label"), texts),
            "trace": st.sampled_from([None, True, False]),
            "pinned": st.booleans(),
            "archived": st.booleans(),
        },
    ),
    max_size=8,
)


def patch_of(values: dict[str, Any]) -> SessionPatch:
    """The patch that sets these values."""
    marks = {path: value for path, value in values.items() if path in MARKS}
    settings = {path: value for path, value in values.items() if path not in MARKS}
    return SessionPatch(frozenset(values), SessionSettings(**settings), **marks)


def shown(session: Session) -> dict[str, Any]:
    """All that can be set of a session."""
    return {path: getattr(session if path in MARKS else session.settings, path) for path in NOT_SET}


@given(updates)
def test_the_last_update_that_names_a_field_decides_about_it(given_updates: list[dict[str, Any]]) -> None:
    session, expected = make_session(), dict(NOT_SET)
    for values in given_updates:
        session = patch_of(values).applied_to(session)
        expected |= values
    assert shown(session) == expected


@given(updates, st.sets(st.sampled_from(sorted(NOT_SET))))
def test_clearing_a_field_restores_what_holds_without_it(
    given_updates: list[dict[str, Any]], cleared: set[str]
) -> None:
    session = make_session()
    for values in given_updates:
        session = patch_of(values).applied_to(session)
    after = patch_of({path: NOT_SET[path] for path in cleared}).applied_to(session)
    assert shown(after) == shown(session) | {path: NOT_SET[path] for path in cleared}


@given(updates)
def test_an_update_changes_nothing_the_second_time(given_updates: list[dict[str, Any]]) -> None:
    for values in given_updates:
        once = patch_of(values).applied_to(make_session())
        assert patch_of(values).applied_to(once) == once


@given(updates)
def test_updates_of_different_fields_come_to_the_same_in_any_order(given_updates: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    apart = []
    for values in given_updates:
        apart.append({path: value for path, value in values.items() if path not in seen})
        seen |= set(values)
    one, other = make_session(), make_session()
    for values in apart:
        one = patch_of(values).applied_to(one)
    for values in reversed(apart):
        other = patch_of(values).applied_to(other)
    assert one == other


@given(updates)
def test_what_is_set_is_stored_and_read_as_it_is(given_updates: list[dict[str, Any]]) -> None:
    for values in given_updates:
        settings = patch_of(values).applied_to(make_session()).settings
        assert settings_from_json(settings_json(settings)) == settings


def test_nothing_set_is_stored_as_nothing() -> None:
    assert settings_json(SessionSettings()) == ""
    assert settings_json(SessionSettings(trace=False)) == '{"trace":false}'


def test_a_setting_of_a_later_version_is_passed_over() -> None:
    assert settings_from_json('{"model":"acme/m","shoe_size":44}') == SessionSettings(model="acme/m")


def test_only_what_gets_a_value_counts_as_set() -> None:
    patch = patch_of({"model": "acme/m", "thinking": "", "trace": None})
    assert [path for path in ("model", "thinking", "trace", "verbose") if patch.sets(path)] == ["model"]
    assert replace(patch, settings=replace(patch.settings, trace=False)).sets("trace")
