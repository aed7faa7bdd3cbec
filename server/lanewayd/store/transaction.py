"""What a command may do to the database: run named queries in the writer's transaction, and take numbers.

Owned by the writer's thread. Positions and acceptance numbers are read from the database at the start of each group and
stored with it, so a group or a command that is undone gives its numbers back.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lanewayd.store.writer_interface import EventCodec

Row = sqlite3.Row
Parameters = tuple[object, ...] | Mapping[str, object]

# Errors of one statement. After any other error of the database the transaction cannot be trusted: disk full, I/O
# error, corruption, a lock that another process holds.
_STATEMENT_ERRORS = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_RANGE,
    }
)


class GroupLostError(Exception):
    """The transaction of the group is over or cannot be trusted; none of its commands may be acknowledged."""


class RowRefusedError(ValueError):
    """The database refuses a row of a command: a bug of who made the command, not a failure of the store."""


class SavepointsNeededError(Exception):
    """A command failed after it had written something, outside a savepoint: the group must be done again with them."""


class Transaction:
    """The connection that writes, one group after the other.

    `begin`, then `attempt` or `attempt_lightly` for each command, `store_numbers`, `commit`; after any exception of
    these but those of a command, `is_stored_after_all`.
    """

    def __init__(
        self, connection: sqlite3.Connection, sql: Mapping[str, str], *, codec: EventCodec, store_id: str
    ) -> None:
        self._connection = connection
        self._sql = sql
        self.codec = codec
        self.store_id = store_id
        self.last_position = 0
        self.last_accepted_no = 0
        self.event_bytes = 0
        self._commit_no = 0

    # --- for commands ---

    def execute(self, query: str, parameters: Parameters = ()) -> int:
        """Run a statement; the number of rows it changed."""
        return self._connection.execute(self._sql[query], parameters).rowcount

    def execute_many(self, query: str, rows: Iterable[Parameters]) -> None:
        """Run a statement once for each of `rows`."""
        self._connection.executemany(self._sql[query], rows)

    def one(self, query: str, parameters: Parameters = ()) -> Any:
        """The first row, or None. A row is read by column name or position."""
        return self._connection.execute(self._sql[query], parameters).fetchone()

    def all(self, query: str, parameters: Parameters = ()) -> list[Row]:
        """All rows."""
        return self._connection.execute(self._sql[query], parameters).fetchall()

    def take_accepted_no(self) -> int:
        """The next number in the order of acceptance."""
        self.last_accepted_no += 1
        return self.last_accepted_no

    # --- for the writer ---

    def begin(self) -> None:
        """Open the transaction of a group."""
        self._commit_no = -1  # not yet known: nothing that is stored has it
        if self._connection.in_transaction:
            # An earlier rollback failed.
            self._run("rollback_group")
        self._run("begin_group")
        numbers = self.one("select_numbers")
        stored_commit_no, self.last_position, self.last_accepted_no, self.event_bytes = numbers
        self._commit_no = stored_commit_no + 1

    def attempt(self, apply: Callable[["Transaction", object], object], command: object) -> object:
        """Apply one command in a savepoint. What `apply` raises comes out, with the savepoint undone.

        Raises GroupLostError when the database failed in a way that harms the whole group.
        """
        numbers = self._numbers()
        self._run("open_savepoint")
        try:
            result = apply(self, command)
        except Exception as error:
            if self._harms_group(error):
                raise GroupLostError(str(error)) from error
            self._run("undo_savepoint")
            self._run("close_savepoint")
            self.last_position, self.last_accepted_no, self.event_bytes = numbers
            if isinstance(error, sqlite3.Error):
                raise RowRefusedError(str(error)) from error
            raise
        self._run("close_savepoint")
        return result

    def attempt_lightly(self, apply: Callable[["Transaction", object], object], command: object) -> object:
        """As `attempt`, without savepoint, which costs as much as a row: enough for a command that succeeds, and for
        one that is refused before it has written anything, which is nearly all of them.

        Raises SavepointsNeededError, after which the transaction can only be rolled back.
        """
        numbers, changes = self._numbers(), self._connection.total_changes
        try:
            return apply(self, command)
        except Exception as error:
            if self._harms_group(error):
                raise GroupLostError(str(error)) from error
            if self._connection.total_changes != changes:
                raise SavepointsNeededError from error
            self.last_position, self.last_accepted_no, self.event_bytes = numbers
            if isinstance(error, sqlite3.Error):
                raise RowRefusedError(str(error)) from error
            raise

    def rollback(self) -> None:
        """Nothing of the group is left."""
        self._run("rollback_group")

    def store_numbers(self) -> None:
        """The last statement of a group."""
        self.execute("update_numbers", (self._commit_no, self.last_position, self.last_accepted_no, self.event_bytes))

    def commit(self) -> None:
        """Make the group durable."""
        self._run("commit_group")

    def is_stored_after_all(self) -> bool:
        """After an error: end the transaction, and look whether the group was committed nevertheless."""
        try:
            if self._connection.in_transaction:
                self._run("rollback_group")
            numbers = self.one("select_numbers")
        except sqlite3.Error:
            return False
        return bool(numbers["commit_no"] == self._commit_no)

    def take_room(self) -> None:
        """Write something that needs room in the file, as rows of commands do."""
        self.execute("insert_trial")

    def give_room_back(self) -> None:
        """Undo what `take_room` did, in a later group."""
        self.execute("delete_trials")

    def checkpoint_and_close(self) -> None:
        """Move everything into the database file; the last act of the writer."""
        try:
            if self._connection.in_transaction:
                self._run("rollback_group")
            self._run("checkpoint_all")
        finally:
            self._connection.close()

    def _numbers(self) -> tuple[int, int, int]:
        return self.last_position, self.last_accepted_no, self.event_bytes

    def _run(self, query: str) -> None:
        try:
            self._connection.execute(self._sql[query]).close()
        except sqlite3.Error as error:
            raise GroupLostError(str(error)) from error

    def _harms_group(self, error: Exception) -> bool:
        if not self._connection.in_transaction:
            return True
        if not isinstance(error, sqlite3.Error):
            return False
        code = getattr(error, "sqlite_errorcode", None)  # None: raised by Python's module itself, for a wrong parameter
        return code is not None and code & 0xFF not in _STATEMENT_ERRORS
