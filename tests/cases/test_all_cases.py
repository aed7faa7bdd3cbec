"""No case is forgotten: each has a test named after it, or stands in pending.md or replaced.md and says why."""

import ast
import re
from pathlib import Path

from tests.cases.case_files import FOLDER, cases

TESTS = FOLDER.parent
_TEST_OF_A_CASE = re.compile(r"test_b_?(\d{3})_")
_NAMED_TEST = re.compile(r"`(test_\w+)`")


def functions_of(path: Path) -> set[str]:
    """Names of the functions of a test file."""
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def ids_with_tests() -> set[str]:
    """Cases that have a test in this folder."""
    names = {name for path in FOLDER.glob("test_*.py") for name in functions_of(path)}
    return {f"B-{found[1]}" for name in names if (found := _TEST_OF_A_CASE.match(name))}


def rows_of(file_name: str) -> list[list[str]]:
    """The rows of the table in a file: the case, its part, and the other cells."""
    lines = (FOLDER / file_name).read_text("utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| B-")]


def test_each_case_has_a_test_or_waits_or_is_replaced() -> None:
    listed = {row[0] for file_name in ("pending.md", "replaced.md") for row in rows_of(file_name)}
    assert set(cases()) - ids_with_tests() - listed == set()


def test_what_is_listed_is_a_case_and_stands_there_once() -> None:
    for file_name in ("pending.md", "replaced.md"):
        parts = [(row[0], row[1]) for row in rows_of(file_name)]
        assert len(set(parts)) == len(parts)
        assert {case_id for case_id, _ in parts} <= set(cases())
    assert len({row[0] for row in rows_of("pending.md")}) == len(rows_of("pending.md"))


def test_a_case_that_has_a_test_is_listed_for_a_part_only() -> None:
    whole = {row[0] for file_name in ("pending.md", "replaced.md") for row in rows_of(file_name) if row[1] == "all"}
    assert whole & ids_with_tests() == set()
    elsewhere = {row[0] for row in rows_of("pending.md")} & {row[0] for row in rows_of("replaced.md")}
    assert elsewhere == set()


def test_the_tests_that_are_named_exist() -> None:
    """Somewhere: they may move from file to file."""
    existing = {name for path in TESTS.rglob("test_*.py") for name in functions_of(path)}
    for file_name in ("pending.md", "replaced.md"):
        for row in rows_of(file_name):
            named = _NAMED_TEST.findall(row[-1])
            is_needed = file_name == "replaced.md" or row[1] != "all"
            assert bool(named) == is_needed, row
            assert set(named) <= existing, row
