"""Followers over a real store whose reads a test can hold."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar, cast

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.fakes.store_codec import JsonCodec
from tests.fakes.store_commands import (
    KEEP_ALL,
    append_to,
    ends,
    says,
)
from tests.unit.runs.bench import soon
from tests.unit.runs.bench_agents import BenchAgents
from tests.unit.runs.seen_store import SeenStore

from lanewayd.errors import LanewayError
from lanewayd.events import StoredEvent
from lanewayd.records import Run
from lanewayd.runs.commits import CommitFeed
from lanewayd.runs.followers import Followers
from lanewayd.runs.interface import Progress, Snapshot
from lanewayd.runs.looks import SessionLooks
from lanewayd.runs.registry import RunRegistry
from lanewayd.store.sqlite import SqliteStore

Item = StoredEvent | Snapshot | Progress
T = TypeVar("T")


@dataclass
class Desk:
    """Followers over a store. They hear its commits as in the service; its other listener is deaf."""

    store: SqliteStore
    seen: SeenStore
    clock: FakeClock
    followers: Followers

    def committed(self, command: object, result: object) -> None:
        """As the run registry hears it."""

    async def say(self, run_id: str, first_seq: int, count: int) -> None:
        """Append `count` events."""
        await self.store.append(append_to(run_id, first_seq, says(*(f"text {number}" for number in range(count)))))

    async def end(self, run_id: str, seq: int) -> None:
        await self.store.append(append_to(run_id, seq, ends()))

    async def prune(self, **rules: object) -> None:
        """All that `rules` say goes."""
        while not (await self.store.prune(replace(KEEP_ALL, **rules))).is_done:  # type: ignore[arg-type]
            pass


class LateFollowers(Followers):
    """Every run is one of an earlier process: where its log begins was not heard here."""

    def run_accepted(self, run: Run) -> None:
        """Not heard."""


@asynccontextmanager
async def a_desk(home: Path, *, hears_beginnings: bool) -> AsyncIterator[Desk]:
    """A desk over a store in `home`."""
    store = await SqliteStore.open(home / "laneway.db", codec=JsonCodec())
    seen, clock = SeenStore(store), FakeClock()
    desk = Desk(store, seen, clock, (Followers if hears_beginnings else LateFollowers)(seen.as_store, clock))
    looks = SessionLooks(store, BenchAgents())
    store.listener = CommitFeed(
        desk.followers, cast("RunRegistry", desk), looks=looks, on_store_works=lambda _works: None
    )
    yield desk
    await store.close()


async def take(items: AsyncGenerator[T, None], count: int) -> list[T]:
    return [await soon(anext(items)) for _ in range(count)]


async def rest(items: AsyncGenerator[T, None]) -> list[T]:
    async with asyncio.timeout(10), aclosing(items):
        return [item async for item in items]


def seqs(items: list[Item]) -> list[int]:
    return [item.seq for item in items if isinstance(item, StoredEvent)]


def whole(items: list[Item]) -> list[tuple[str, int, bytes]]:
    return [(item.run_id, item.seq, item.encoded) for item in items if isinstance(item, StoredEvent)]


async def refused_after(items: AsyncGenerator[T, None], got: list[T]) -> LanewayError:
    """Read into `got` until the reader is refused."""

    async def read() -> None:
        async for item in items:
            got.append(item)  # noqa: PERF401 - what came before the refusal counts

    with pytest.raises(LanewayError) as raised:
        await soon(read())
    return raised.value


async def refusal(items: AsyncGenerator[T, None]) -> LanewayError:
    with pytest.raises(LanewayError) as raised:
        await rest(items)
    return raised.value


@asynccontextmanager
async def held_reads(desk: Desk, name: str) -> "AsyncIterator[asyncio.Queue[asyncio.Future[None]]]":
    held = desk.seen.hold(name)
    yield held
    desk.seen.let_go(name)


async def until_caught_up(desk: Desk) -> None:
    """The reader has read the store to the end and waits (with its timer for progress)."""
    await soon(desk.clock.wait_for_timers(1))
