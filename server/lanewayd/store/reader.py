"""Reads committed data in a thread of its own, on a connection that cannot write.

Every read is one snapshot and fetches its rows whole: an open cursor would hold back the writer's checkpoint.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from lanewayd.errors import StoreUnavailable
from lanewayd.store.transaction import Parameters, Row

T = TypeVar("T")


class Snapshot:
    """Runs named queries against one state of the database. For use inside one read."""

    def __init__(self, connection: sqlite3.Connection, sql: Mapping[str, str]) -> None:
        self._connection = connection
        self._sql = sql

    def one(self, query: str, parameters: Parameters = ()) -> Any:
        """The first row, or None."""
        cursor = self._connection.execute(self._sql[query], parameters)
        try:
            return cursor.fetchone()
        finally:
            cursor.close()

    def all(self, query: str, parameters: Parameters = ()) -> list[Row]:
        """All rows."""
        return self._connection.execute(self._sql[query], parameters).fetchall()


class Reader:
    """Owns the reading connection and its thread."""

    def __init__(self, connection: sqlite3.Connection, sql: Mapping[str, str]) -> None:
        self._connection = connection
        self._sql = sql
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="laneway-store-reader")
        self._is_closing = False

    async def read(self, question: Callable[[Snapshot], T]) -> T:
        """The answer of `question`, which is called in the reader's thread. Raises StoreUnavailable."""
        if self._is_closing:
            raise StoreUnavailable("the store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, question)

    async def close(self) -> None:
        """Finish what was asked, then close. Idempotent."""
        if not self._is_closing:
            self._is_closing = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
            self._thread.shutdown(wait=True)

    def _answer(self, question: Callable[[Snapshot], T]) -> T:
        try:
            self._connection.execute(self._sql["begin_snapshot"])
            try:
                return question(Snapshot(self._connection, self._sql))
            finally:
                self._connection.execute(self._sql["end_snapshot"])
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the store cannot be read: {error}") from error
