"""The contract of `Store`: what is set for sessions. Run against every implementation."""

import asyncio

import pytest
from tests.fakes.store_commands import NOW, SESSION, TENANT, accept_run, append_to, ended, ends, running, start_run

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.records import EntryKind, NewEntry, SessionPatch, SessionSettings
from lanewayd.store.interface import DeleteSession, ResetSession, Store, UpdateSession


async def test_updates_of_different_fields_both_stand_whatever_runs(store: Store) -> None:
    await running(store, "r1")
    model = SessionPatch(frozenset({"model", "pinned"}), SessionSettings(model="acme/big"), pinned=True)
    label = SessionPatch(frozenset({"label", "trace"}), SessionSettings(trace=False), label="mine")
    await asyncio.gather(
        *(store.update_session(UpdateSession(TENANT, SESSION, patch, NOW)) for patch in (model, label))
    )
    session = await store.session(TENANT, SESSION)
    assert session is not None
    assert session.settings == SessionSettings(model="acme/big", trace=False)
    assert (session.label, session.pinned, session.archived) == ("mine", True, False)
    assert (session.active_run_id, session.leaf_entry_id) == ("r1", "")
    clear = SessionPatch(frozenset({"model", "label", "pinned", "trace"}))
    assert await store.update_session(UpdateSession(TENANT, SESSION, clear, NOW)) == await store.session(
        TENANT, SESSION
    )
    session = await store.session(TENANT, SESSION)
    assert session is not None
    assert (session.settings, session.label, session.pinned) == (SessionSettings(), "", False)


async def test_what_is_set_survives_a_message_and_a_reset_but_not_a_deletion(store: Store) -> None:
    await ended(store, "r1")
    patch = SessionPatch(frozenset({"model", "pinned"}), SessionSettings(model="acme/big"), pinned=True)
    await store.update_session(UpdateSession(TENANT, SESSION, patch, NOW))
    await store.accept(accept_run("r2"))
    await store.start(start_run("r2"))
    await store.append(append_to("r2", 2, ends()))
    reset = await store.reset_session(ResetSession(TENANT, SESSION, NewEntry("x", NOW, EntryKind.RESET, "{}")))
    assert (reset.settings.model, reset.pinned) == ("acme/big", True)
    await store.delete_session(DeleteSession(TENANT, SESSION))
    await store.accept(accept_run("r3"))
    fresh = await store.session(TENANT, SESSION)
    assert fresh is not None
    assert (fresh.settings, fresh.pinned) == (SessionSettings(), False)


async def test_an_unknown_session_is_not_updated(store: Store) -> None:
    await ended(store, "r1")
    with pytest.raises(LanewayError) as caught:
        await store.update_session(UpdateSession("other", SESSION, SessionPatch(frozenset({"label"}), label="x"), NOW))
    assert caught.value.code is ErrorCode.SESSION_NOT_FOUND
    session = await store.session(TENANT, SESSION)
    assert session is not None
    assert session.label == ""
