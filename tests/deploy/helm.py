"""Helm's own engine, in a process of its own: its Go runtime would bring threads and signal handlers into this one.

`python -m tests.deploy.helm` is that process: a JSON request in each line of stdin, a JSON answer in each of stdout.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import helm_python

REPOSITORY = Path(__file__).parents[2]
CHART = REPOSITORY / "helm" / "laneway"
NOTES = "NOTES.txt"


class HelmRefused(Exception):
    """Helm's own words: the values do not fit the schema, or a template failed."""


class Helm:
    """The chart as Helm sees it. A context manager: the process ends with it."""

    def __init__(self, chart: Path = CHART) -> None:
        self._chart = str(chart)
        command = [sys.executable, "-m", "tests.deploy.helm"]
        self._process = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def render(self, values: dict[str, Any], *, name: str = "agents", namespace: str = "team") -> dict[str, str]:
        """Name of the template -> what it renders to; empty ones are left out. Raises HelmRefused."""
        rendered = self._ask({"do": "render", "values": values, "name": name, "namespace": namespace})
        files = {path.partition("/templates/")[2]: text for path, text in rendered.items()}
        return {path: text for path, text in files.items() if text.strip()}

    def lint(self, values: dict[str, Any]) -> list[str]:
        """What `helm lint --strict` finds, warnings and errors."""
        report = self._ask({"do": "lint", "values": values})
        return [f"{message['path']}: {message['error']}" for message in report["messages"] if message["severity"] > 1]

    def package(self, folder: Path) -> Path:
        """The chart as an archive in `folder`."""
        return Path(self._ask({"do": "package", "folder": str(folder)})["path"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"chart": self._chart, **request}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process with Helm's engine has ended")
        answer: dict[str, Any] = json.loads(line)
        if "refused" in answer:
            raise HelmRefused(answer["refused"])
        return answer["done"]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What Helm says to one request."""
    match request["do"]:
        case "render":
            with helm_python.Chart.load(request["chart"]) as chart:
                return chart.render(request["values"], name=request["name"], namespace=request["namespace"])
        case "lint":
            return helm_python.lint(request["chart"], request["values"], strict=True)
        case "package":
            return {"path": helm_python.package(request["chart"], destination=request["folder"])}
        case other:
            raise ValueError(other)


def main() -> None:
    """Answer until stdin ends."""
    for line in sys.stdin:
        try:
            reply: dict[str, Any] = {"done": answer(json.loads(line))}
        except helm_python.HelmError as error:
            reply = {"refused": str(error)}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
