"""The real store with an ear or a fault on its way: nothing here keeps or invents data."""

import asyncio
from typing import Any, cast

from lanewayd.errors import StoreUnavailable
from lanewayd.store.interface import Appended, AppendToRun, Started, StartRun, Store
from lanewayd.store.sqlite import SqliteStore


class SeenStore:
    """Passes everything on to a SqliteStore.

    `appends` are the append commands that were given, `in_flight` how many of them are unanswered at most. The next
    calls of a method named in `lost_answers` take effect, and then fail as if the answer had been lost; those of a
    method in `failing` fail without effect. A read named in `held` is answered when its future is set.
    """

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.appends: list[AppendToRun] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.lost_answers: list[str] = []
        self.failing: list[str] = []
        self.held: dict[str, asyncio.Queue[asyncio.Future[None]]] = {}
        self.reads: list[str] = []

    async def append(self, command: AppendToRun) -> Appended:
        self.appends.append(command)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return cast("Appended", await self._pass("append", command))
        finally:
            self.in_flight -= 1

    async def start(self, command: StartRun) -> Started:
        return cast("Started", await self._pass("start", command))

    def hold(self, name: str) -> "asyncio.Queue[asyncio.Future[None]]":
        """From now on each answer of the read `name` waits for the future that comes through this queue."""
        return self.held.setdefault(name, asyncio.Queue())

    def let_go(self, name: str) -> None:
        """Hold no further answer of `name`."""
        del self.held[name]

    async def _pass(self, name: str, *arguments: Any, **options: Any) -> Any:
        if name in self.failing:
            self.failing.remove(name)
            raise StoreUnavailable("the store does not answer")
        result = await getattr(self._store, name)(*arguments, **options)
        if name in self.lost_answers:
            self.lost_answers.remove(name)
            raise StoreUnavailable("the answer was lost")
        if name in self.held:
            answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.held[name].put_nowait(answered)
            await answered
        return result

    def __getattr__(self, name: str) -> Any:
        if name == "store_id":
            return self._store.store_id

        async def passed(*arguments: Any, **options: Any) -> Any:
            self.reads.append(name)
            return await self._pass(name, *arguments, **options)

        return passed

    @property
    def as_store(self) -> Store:
        """For type checkers."""
        return cast("Store", self)


class Wrapped:
    """Lets a bench's store be seen."""

    def __init__(self) -> None:
        self.seen: SeenStore

    def wrap(self, store: SqliteStore) -> object:
        self.seen = SeenStore(store)
        return self.seen
