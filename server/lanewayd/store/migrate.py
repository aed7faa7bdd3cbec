"""Numbered migrations: `NNNN_name.sql`, each applied once, in order, each in a transaction of its own."""

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lanewayd.errors import StartupError
from lanewayd.store.times import to_us


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    number: int
    name: str
    script: str


def load_migrations(folder: Path) -> tuple[Migration, ...]:
    """All migrations of `folder` in order. Raises ValueError unless they are numbered 1, 2, 3 ..."""
    migrations = []
    for number, file in enumerate(sorted(folder.glob("*.sql")), start=1):
        if file.name.split("_")[0] != f"{number:04}":
            raise ValueError(f"{file.name} is not migration {number:04}")
        migrations.append(Migration(number, file.stem, file.read_text(encoding="utf-8")))
    return tuple(migrations)


def check_not_newer(applied: set[int], migrations: tuple[Migration, ...]) -> None:
    """Raises StartupError when the database has a migration that is not known here."""
    newest = max(applied, default=0)
    if newest > len(migrations):
        raise StartupError(
            f"the database has schema {newest} and this version of Laneway knows {len(migrations)}: it was written by a"
            " newer version; install that version, or use another home"
        )


def migrate(
    connection: sqlite3.Connection, sql: Mapping[str, str], migrations: tuple[Migration, ...], now: datetime
) -> None:
    """Bring the database to the newest schema. Raises sqlite3.Error; the migration at fault leaves no trace."""
    connection.execute(sql["create_migrations"])
    for migration in migrations:
        connection.execute(sql["begin_group"])
        try:
            applied = {row[0] for row in connection.execute(sql["select_migrations"])}
            if migration.number not in applied:
                for statement in _statements(migration.script):
                    connection.execute(statement)
                connection.execute(sql["insert_migration"], (migration.number, migration.name, to_us(now)))
            connection.execute(sql["commit_group"])
        except BaseException:
            if connection.in_transaction:
                connection.execute(sql["rollback_group"])
            raise


def _statements(script: str) -> Iterator[str]:
    lines: list[str] = []
    for line in script.splitlines():
        lines.append(line)
        statement = "\n".join(lines)
        if sqlite3.complete_statement(statement):
            yield statement
            lines = []
