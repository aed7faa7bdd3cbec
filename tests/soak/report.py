"""What a soak found, as a table to read and as JSON: the same form for all of them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.soak.progress import Progress

_SHOWN_VIOLATIONS = 20


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. With a limit it is a promise: what lies above is a violation."""

    name: str
    value: float | None
    """None = too little was done to judge it."""
    unit: str = ""
    limit: float | None = None

    @property
    def has_failed(self) -> bool:
        """It lies above its limit."""
        return self.limit is not None and self.value is not None and self.value > self.limit


@dataclass(frozen=True, slots=True)
class Report:
    """One soak. It has passed when it did all rounds without a violation."""

    soak: str
    rounds_are: str
    progress: Progress
    figures: Sequence[Figure]

    @property
    def violations(self) -> list[str]:
        """Those of the units, and the figures that lie above their limits."""
        exceeded = [
            f"{figure.name}: {_number(figure.value)} {figure.unit}, at most {_number(figure.limit)}"
            for figure in self.figures
            if figure.has_failed
        ]
        return [*self.progress.violations, *exceeded]

    @property
    def has_passed(self) -> bool:
        """Nothing was harmed, and nothing is left to do."""
        return not self.violations and self.progress.rounds >= self.progress.wanted

    def as_json(self) -> dict[str, Any]:
        """All there is."""
        progress = self.progress
        return {
            "soak": self.soak,
            "passed": self.has_passed,
            "seed": progress.seed,
            "rounds": progress.rounds,
            "rounds_wanted": progress.wanted,
            "rounds_are": self.rounds_are,
            "starts": progress.segments,
            "seconds": progress.seconds,
            "figures": [asdict(figure) for figure in self.figures],
            "violations": self.violations,
            "units": [asdict(unit) for unit in progress.units],
        }


def figures_of(progress: Progress, more: Sequence[Figure] = ()) -> list[Figure]:
    """The sums and peaks of the units, a rate, and what the soak itself adds, in place of what has the same name."""
    judged = {figure.name for figure in more}
    figures = [Figure(name, value) for name, value in progress.counts.items() if name not in judged]
    figures += [Figure(name, value) for name, value in progress.peaks.items() if name not in judged]
    if progress.seconds:
        figures.append(Figure("rounds per second", progress.rounds / progress.seconds))
    return [*figures, *more]


def table(report: Report) -> str:
    """A head line, one line per figure, the violations."""
    progress = report.progress
    head = (
        f"{report.soak}: {progress.rounds:,} of {progress.wanted:,} {report.rounds_are}, {len(progress.units)} units, "
        f"{progress.seconds:,.0f} s, seed {progress.seed}: {'passed' if report.has_passed else 'FAILED'}"
    )
    violations = report.violations
    rows = [_cells(figure) for figure in report.figures]
    rows.append(("violations", f"{len(violations):,}", "", "<= 0", "FAIL" if violations else "pass"))
    lines = [head, *_aligned(rows)]
    lines += [f"  - {text}" for text in violations[:_SHOWN_VIOLATIONS]]
    if len(violations) > _SHOWN_VIOLATIONS:
        lines.append(f"  - and {len(violations) - _SHOWN_VIOLATIONS:,} more, see the JSON")
    return "\n".join(lines)


def _cells(figure: Figure) -> tuple[str, ...]:
    if figure.limit is None:
        return (figure.name, _number(figure.value), figure.unit, "", "")
    verdict = "FAIL" if figure.has_failed else "not judged" if figure.value is None else "pass"
    return (figure.name, _number(figure.value), figure.unit, f"<= {_number(figure.limit)}", verdict)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number == 1 else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1000 else f"{value:.3g}"
