"""The contract of stores: the health of credentials, and the pins of sessions. Run against every implementation."""

from typing import Protocol, cast

from tests.fakes.store_commands import (
    NOW,
    SESSION,
    TENANT,
    accept_run,
    an_entry,
)
from tests.store.conftest import OpenStore

from lanewayd.models.profiles import CredentialRecords
from lanewayd.records import EntryKind
from lanewayd.store.interface import DeleteSession, ImportSession, ResetSession, Store

OTHER = "agent:main:other"


class StoreWithCredentials(Store, CredentialRecords, Protocol):
    """What every store is besides its main contract."""


async def a_store_with_sessions(open_store: OpenStore) -> StoreWithCredentials:
    """Two sessions, without runs."""
    store = cast(StoreWithCredentials, await open_store())
    for key in (SESSION, OTHER):
        await store.import_session(ImportSession(TENANT, key, f"id of {key}", "main", NOW, NOW, ()))
    return store


async def test_the_last_state_of_a_credential_is_kept_and_outlives_the_store(open_store: OpenStore) -> None:
    store = cast(StoreWithCredentials, await open_store())
    assert await store.credential_health() == []
    await store.save_credential_health("acme", "work", "{}")
    await store.save_credential_health("acme", "default", "1")
    await store.save_credential_health("acme", "work", "2")
    await store.close()
    store = cast(StoreWithCredentials, await open_store())
    assert sorted(await store.credential_health()) == [("acme", "default", "1"), ("acme", "work", "2")]


async def test_a_session_has_one_pin_for_each_provider(open_store: OpenStore) -> None:
    store = await a_store_with_sessions(open_store)
    session_id = f"id of {SESSION}"
    assert await store.credential_pin(session_id, "acme") == ""
    for provider, profile in (("acme", "work"), ("other", "x"), ("acme", "default")):
        await store.pin_credential(session_id, provider, profile)
    assert await store.credential_pin(session_id, "acme") == "default"
    assert await store.credential_pin(session_id, "other") == "x"
    assert await store.credential_pin(f"id of {OTHER}", "acme") == ""


async def test_a_session_that_is_not_there_gets_no_pin(open_store: OpenStore) -> None:
    store = await a_store_with_sessions(open_store)
    await store.pin_credential("nobody", "acme", "work")
    assert await store.credential_pin("nobody", "acme") == ""


async def test_a_reset_or_deleted_session_has_no_pins_and_others_keep_theirs(open_store: OpenStore) -> None:
    store = await a_store_with_sessions(open_store)
    for key in (SESSION, OTHER):
        await store.pin_credential(f"id of {key}", "acme", "work")
    await store.reset_session(ResetSession(TENANT, SESSION, an_entry("reset", EntryKind.RESET)))
    assert await store.credential_pin(f"id of {SESSION}", "acme") == ""
    assert await store.credential_pin(f"id of {OTHER}", "acme") == "work"
    await store.delete_session(DeleteSession(TENANT, OTHER))
    await store.accept(accept_run("r", OTHER))
    assert await store.credential_pin(f"id of {OTHER}", "acme") == ""
