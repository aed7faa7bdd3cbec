"""Loads named queries from the .sql files of a folder.

A query begins with a line `-- name: insert_run`, goes on with at least one comment line that says what it guarantees,
and holds one statement.
"""

from collections.abc import Mapping
from pathlib import Path

_NAME = "-- name:"


def load_queries(folder: Path) -> Mapping[str, str]:
    """Name -> statement, of all .sql files directly in `folder`.

    Raises ValueError for a name that stands twice, a query without comment, or text before the first name.
    """
    queries: dict[str, str] = {}
    for file in sorted(folder.glob("*.sql")):
        before, *sections = file.read_text(encoding="utf-8").split(_NAME)
        if any(line.strip() and not line.startswith("--") for line in before.splitlines()):
            raise ValueError(f"{file.name}: a statement before the first name")
        for section in sections:
            name, statement = _parse(file.name, section)
            if name in queries:
                raise ValueError(f"{file.name}: two queries are named {name}")
            queries[name] = statement
    return queries


def _parse(file_name: str, section: str) -> tuple[str, str]:
    first_line, *lines = section.splitlines()
    name = first_line.strip()
    statement = "\n".join(line for line in lines if not line.startswith("--")).strip()
    if not any(line.startswith("--") for line in lines):
        raise ValueError(f"{file_name}: {name} does not say what it guarantees")
    if not name or not statement:
        raise ValueError(f"{file_name}: {name or 'a query'} is empty")
    return name, statement.removesuffix(";")
