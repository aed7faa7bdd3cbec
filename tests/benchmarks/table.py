"""The rows as a table to read and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tests.benchmarks.figures import Row, Spread

_COLUMNS = ("", "measure", "product", "floor", "", "ratio", "target", "")


def table(rows: Sequence[Row]) -> str:
    """One line per row: median and, in brackets, lowest and highest."""
    lines = [_COLUMNS, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def as_json(row: Row) -> dict[str, Any]:
    """All there is of a row."""
    return {**asdict(row), "passed": row.has_passed}


def _cells(row: Row) -> tuple[str, ...]:
    verdict = {True: "pass", False: "FAIL", None: ""}[row.has_passed]
    sign = ">=" if row.is_at_least else "<="
    return (
        row.measure,
        f"{row.what} [{row.unit}]" if row.unit else row.what,
        _spread(row.product),
        _spread(row.floor) if row.floor else "",
        row.floor_name,
        _spread(row.ratio) if row.ratio else "",
        f"{sign} {row.target:g}" if row.target is not None else "",
        verdict,
    )


def _spread(spread: Spread) -> str:
    if spread.lowest == spread.highest:
        return _number(spread.median)
    return f"{_number(spread.median)} ({_number(spread.lowest)}..{_number(spread.highest)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
