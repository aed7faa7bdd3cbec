"""The .sql files: each query is named, explained and used, and the frequent ones go through an index."""

import re
from pathlib import Path

import pytest
from tests.fakes.store_commands import NOW

from lanewayd.store import named_queries
from lanewayd.store.named_queries import load_queries
from lanewayd.store.opening import OpenOptions, open_database

STORE = Path(named_queries.__file__).parent
QUERIES = load_queries(STORE / "sql" / "sqlite")


def test_a_query_is_a_name_a_comment_and_a_statement(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- About a.\n\n-- name: one\n-- The number.\nSELECT 1\n-- inside\nFROM x;\n")
    assert load_queries(tmp_path) == {"one": "SELECT 1\nFROM x"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("-- name: one\nSELECT 1;", "does not say"),
        ("-- name: one\n-- Nothing.\n", "empty"),
        ("SELECT 1;\n-- name: one\n-- The number.\nSELECT 1;", "before the first name"),
        ("-- name: one\n-- The number.\nSELECT 1;\n-- name: one\n-- Again.\nSELECT 1;", "two queries"),
    ],
)
def test_an_unclear_query_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "a.sql").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        load_queries(tmp_path)


def test_every_query_is_used_and_every_name_exists() -> None:
    source = "".join(file.read_text(encoding="utf-8") for file in STORE.rglob("*.py"))
    unused = {name for name in QUERIES if f'"{name}"' not in source}
    assert unused == set()
    asked_for = set(re.findall(r"(?:execute|execute_many|one|all|_run)\(\s*\"(\w+)\"", source))
    assert asked_for - QUERIES.keys() == set()
    assert len(asked_for) > 40


@pytest.mark.parametrize(
    "name",
    [
        "select_run_of_tenant",
        "select_run_head",
        "select_unended",
        "select_unended_of_session",
        "select_runs",
        "select_runs_of_session",
        "select_session",
        "select_sessions",
        "select_session_by_id",
        "select_context",
        "select_entries",
        "select_entry",
        "select_tool_calls",
        "select_run_events",
        "select_session_logs",
        "select_session_pruned",
        "select_tenant_events",
        "select_first_run_to_follow",
        "select_key",
        "delete_expired_keys",
        "select_expired_runs",
        "select_runs_with_old_events",
        "select_ended_with_many_events",
        "select_unended_with_many_events",
        "select_oldest_with_events",
    ],
)
def test_no_frequent_query_reads_a_whole_table(tmp_path: Path, name: str) -> None:
    opened = open_database(tmp_path / "laneway.db", OpenOptions(), NOW)
    statement = QUERIES[name]
    names = dict.fromkeys(re.findall(r":(\w+)", statement), 1)
    parameters = names or (1,) * statement.count("?")
    plan = [row["detail"] for row in opened.reading.execute("EXPLAIN QUERY PLAN " + statement, parameters)]
    opened.reading.close()
    opened.writing.close()
    scans = [step for step in plan if step.startswith("SCAN") and "USING INDEX" not in step]
    inside = {"SCAN path", "SCAN line", "SCAN json_each VIRTUAL TABLE INDEX 1:", "SCAN CONSTANT ROW", "SCAN x"}
    assert [step for step in scans if step not in inside] == []
