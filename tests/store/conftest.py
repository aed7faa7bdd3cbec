"""Stores for the suite of the contract: one factory for each implementation, on real files."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.store_codec import JsonCodec

from lanewayd.store.interface import Store
from lanewayd.store.sqlite import SqliteStore

OpenStore = Callable[..., Awaitable[Store]]


async def _open_sqlite(home: Path, **options: Any) -> Store:
    return await SqliteStore.open(home / "laneway.db", codec=JsonCodec(), **options)


@pytest.fixture(params=[pytest.param(_open_sqlite, id="sqlite")])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenStore]:
    """Opens the store of this test, as often as asked; all are closed at the end."""
    opened: list[Store] = []

    async def open_one(**options: Any) -> Store:
        store: Store = await request.param(tmp_path, **options)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    """An empty store."""
    return await open_store()
