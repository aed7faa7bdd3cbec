"""What a soak has done so far: units of work, one after the other, kept in a file so that it can go on after a stop."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class UnitResult:
    """What one unit did and found. `number`, `segment` and `seconds` are filled in by the player."""

    rounds: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Added up over all units."""
    peaks: dict[str, float] = field(default_factory=dict)
    """The highest of all units counts."""
    samples: list[dict[str, float]] = field(default_factory=list)
    details: list[dict[str, Any]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    number: int = 0
    segment: int = 0
    """How often the soak had been started before: what a server holds is comparable within one start only."""
    seconds: float = 0.0


@dataclass
class Progress:
    """All units of one soak."""

    soak: str
    seed: int
    wanted: int
    """Rounds that this soak shall have."""
    segments: int = 0
    units: list[UnitResult] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        """Rounds done."""
        return sum(unit.rounds for unit in self.units)

    @property
    def seconds(self) -> float:
        """What all units took."""
        return sum(unit.seconds for unit in self.units)

    @property
    def counts(self) -> dict[str, int]:
        """The sums, in the order in which they came up."""
        sums: Counter[str] = Counter()
        for unit in self.units:
            sums.update(unit.counts)
        return dict(sums)

    @property
    def peaks(self) -> dict[str, float]:
        """The highest values."""
        highest: dict[str, float] = {}
        for unit in self.units:
            for name, value in unit.peaks.items():
                highest[name] = max(highest.get(name, value), value)
        return highest

    @property
    def violations(self) -> list[str]:
        """All of them, with the number of their unit."""
        return [f"unit {unit.number}: {text}" for unit in self.units for text in unit.violations]

    def longest_segment(self) -> list[dict[str, float]]:
        """The samples of the start that had most of them; `at` counts the rounds before each, over all starts."""
        segments: dict[int, list[dict[str, float]]] = {}
        for unit in self.units:
            segments.setdefault(unit.segment, []).extend(unit.samples)
        return max(segments.values(), key=len, default=[])


class ProgressFile:
    """`<soak>.state.json` in a results folder."""

    def __init__(self, results: Path, soak: str) -> None:
        self._path = results / f"{soak}.state.json"

    def load(self) -> Progress | None:
        """What was done before; None = nothing."""
        if not self._path.exists():
            return None
        fields = json.loads(self._path.read_text())
        units = [UnitResult(**unit) for unit in fields.pop("units")]
        return Progress(**fields, units=units)

    def save(self, progress: Progress) -> None:
        """Write it as a whole or not at all."""
        unfinished = self._path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(asdict(progress), ensure_ascii=False))
        unfinished.replace(self._path)
