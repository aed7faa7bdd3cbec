"""The Dockerfile without Docker: read into instructions, and its build steps executed below a folder."""

import fnmatch
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
BUILT_BELOW = ("/opt", "/src")
"""Where the build stage writes; every other path of a step is read only."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `stage`: the name of the stage it stands in."""

    stage: str
    name: str
    text: str


def read_dockerfile(path: Path = REPOSITORY / "Dockerfile") -> list[Instruction]:
    """All instructions in order, continued lines joined."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    found: list[Instruction] = []
    stage = ""
    for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines():
        name, _, text = line.strip().partition(" ")
        if not name:
            continue
        if name == "FROM":
            stage = text.rpartition(" AS ")[2]
        found.append(Instruction(stage, name, text.strip()))
    return found


def is_sent(path: str, ignore_file: Path = REPOSITORY / ".dockerignore") -> bool:
    """Whether `path` is part of what Docker is given: the last pattern that fits it or a folder above it decides."""
    names = [path, *(str(parent) for parent in Path(path).parents)]
    is_left_out = False
    for line in ignore_file.read_text().splitlines():
        pattern = line.removeprefix("!")
        if not line or line.startswith("#"):
            continue
        if any(fnmatch.fnmatchcase(name, part) for name in names for part in (pattern, pattern.removeprefix("**/"))):
            is_left_out = not line.startswith("!")
    return not is_left_out


class BuildStage:
    """Executes the instructions of the stage `build` in order. What it writes below / stands below `root` instead."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self.root = root
        self._environment = dict(environment)
        self._folder = root
        self._shell = ["/bin/sh", "-c"]

    def give(self, **arguments: str) -> None:
        """As `docker build --build-arg`, for the steps to come."""
        self._environment |= arguments

    def execute(self, instruction: Instruction) -> None:
        """Raises AssertionError with the output of a step that fails."""
        match instruction.name:
            case "FROM":
                pass
            case "ARG":
                name, _, default = instruction.text.partition("=")
                self._environment.setdefault(name, default)
            case "SHELL":
                self._shell = re.findall(r'"([^"]*)"', instruction.text)
            case "WORKDIR":
                self._folder = self.place_of(instruction.text)
                self._folder.mkdir(parents=True, exist_ok=True)
            case "COPY":
                self._copy(*instruction.text.split())
            case "RUN":
                self._run(instruction.text)
            case name:
                raise AssertionError(f"the build stage has an instruction that this test cannot execute: {name}")

    def place_of(self, path: str) -> Path:
        """Where `path` of the image is here."""
        return self.root / path.removeprefix("/")

    def _copy(self, *words: str) -> None:
        *sources, target = words
        for source in sources:
            assert is_sent(source), f"COPY {source}: .dockerignore leaves it out"
            origin, place = REPOSITORY / source, self._folder / target
            if origin.is_dir():
                shutil.copytree(origin, place, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
            else:
                shutil.copy2(origin, place)

    def _run(self, text: str) -> None:
        for folder in BUILT_BELOW:
            text = re.sub(rf"(?<![\w.-]){folder}(?=/|\b)", str(self.place_of(folder)), text)
        done = subprocess.run(
            [*self._shell, text], cwd=self._folder, env=self._environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"RUN {text}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"
