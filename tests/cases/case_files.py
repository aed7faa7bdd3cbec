"""The behaviour cases as they are written down: loaded by id, so that the bytes served are the case's own."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.fakes.model_answers import Answer, End

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `input` and `expected` as in the file."""

    case_id: str
    group: str
    input: dict[str, Any]
    expected: str

    @property
    def wire(self) -> str:
        """The response body."""
        return str(self.input["wire"])

    def body(self, *replacements: tuple[str, str]) -> bytes:
        """The response body as served, with the replacements of a variant; each must have something to replace."""
        wire = self.wire
        for old, new in replacements:
            assert old in wire
            wire = wire.replace(old, new)
        return wire.encode()

    def answer(self, *replacements: tuple[str, str]) -> Answer:
        """What the model service answers: exactly these bytes, split where the case splits them."""
        end = End.CLOSE if self.input.get("end") == "close" else End.COMPLETE
        if "chunks" not in self.input:
            return Answer([self.body(*replacements)], end=end)
        steps: list[bytes | float] = []
        for chunk in self.input["chunks"]:
            # A pause, so that the network does not join what the case splits.
            steps += [chunk.encode("latin-1"), 0.02]
        return Answer(steps, end=end)


@cache
def cases() -> dict[str, Case]:
    """All cases of all groups by their ids."""
    loaded = [entry for path in sorted(FOLDER.glob("*.yaml")) for entry in yaml.safe_load(path.read_text("utf-8"))]
    by_id = {entry["id"]: Case(entry["id"], entry["group"], entry["input"], entry["expected"]) for entry in loaded}
    assert len(by_id) == len(loaded)
    return by_id


def case(case_id: str) -> Case:
    """One case."""
    return cases()[case_id]
