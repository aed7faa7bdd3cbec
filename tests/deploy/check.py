"""`python -m tests.deploy.check`: the Dockerfile and the chart, looked at by the tools that know them best.

hadolint for the Dockerfile, Helm's lint for the chart, and for what each set of values renders to: yamllint and the
schemas of several versions of Kubernetes, strict. Part of `make check`.
"""

import functools
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import kubernetes_validate.utils as kubernetes_schemas  # type: ignore[import-untyped]
import yaml
from tests.deploy.generate import outdated
from tests.deploy.helm import CHART, NOTES, REPOSITORY, Helm
from yamllint import linter  # type: ignore[import-untyped]
from yamllint.config import YamlLintConfig  # type: ignore[import-untyped]

KUBERNETES = ("1.27", "1.30", "1.34", "1.37")
"""The first with stable gRPC probes, the newest, and some between."""
OWN_RESOURCES = {"monitoring.coreos.com/v1": "PodMonitor"}
"""What the schemas cannot know: resources of operators."""
_YAML = YamlLintConfig(
    "extends: default\n"
    "rules:\n"
    "  document-start: disable\n"
    "  line-length: {max: 120}\n"
    "  octal-values: enable\n"
    "  empty-values: enable\n"
)
# Helm leaves blank lines where a directive stood, and writes long hashes and lists without indentation.
_RENDERED_YAML = YamlLintConfig(
    "extends: default\n"
    "rules:\n"
    "  document-start: disable\n"
    "  line-length: disable\n"
    "  empty-lines: {max: 2, max-start: 2}\n"
    "  trailing-spaces: enable\n"
    "  octal-values: enable\n"
    "  empty-values: enable\n"
    "  indentation: {indent-sequences: whatever}\n"
)

# They are read anew for every single object, and are megabytes.
kubernetes_schemas.schema_contents = functools.cache(kubernetes_schemas.schema_contents)


def value_sets() -> dict[str, dict[str, Any]]:
    """Name -> values, of all sets that the chart is tested with."""
    folder = Path(__file__).parent / "value_sets"
    return {path.stem: yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yaml"))}


def objects_in(rendered: dict[str, str]) -> list[dict[str, Any]]:
    """The Kubernetes objects in what a chart rendered to."""
    texts = (text for name, text in rendered.items() if name != NOTES)
    return [document for text in texts for document in yaml.safe_load_all(text) if document]


def yaml_problems(text: str, config: YamlLintConfig = _RENDERED_YAML) -> Iterator[str]:
    """What yamllint says."""
    for problem in linter.run(text, config):
        yield f"line {problem.line}: {problem.message}"


def object_problems(document: dict[str, Any], version: str) -> Iterator[str]:
    """What the schema of a version of Kubernetes says of an object; unknown fields are problems too."""
    if OWN_RESOURCES.get(document["apiVersion"]) == document["kind"]:
        return
    name = f"{document['kind']} {document['metadata']['name']} in {version}"
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except kubernetes_schemas.ValidationError as error:
        yield f"{name}: {'.'.join(map(str, error.path))}: {error.message}"
    except kubernetes_schemas.SchemaNotFoundError as error:
        yield f"{name}: {error.message}"


def dockerfile_problems(path: Path = REPOSITORY / "Dockerfile") -> Iterator[str]:
    """What hadolint says."""
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if hadolint is None:
        print("NOT CHECKED: Dockerfile, there is no hadolint for this machine", file=sys.stderr)
        return
    done = subprocess.run([hadolint, "--no-color", path], capture_output=True, text=True, check=False)
    yield from done.stdout.splitlines()
    if done.returncode and not done.stdout:
        yield f"hadolint ended with {done.returncode}: {done.stderr}"


def chart_problems(sets: dict[str, dict[str, Any]]) -> Iterator[str]:
    """All that is wrong with the chart with any of the sets."""
    for name in ("Chart.yaml", "values.yaml"):
        yield from (f"{name}: {problem}" for problem in yaml_problems((CHART / name).read_text(), _YAML))
    yield from (f"{path.name} is out of date: python -m tests.deploy.generate" for path in outdated())
    seen: list[dict[str, Any]] = []
    with Helm() as helm:
        for set_name, values in sets.items():
            yield from (f"{set_name}: lint: {problem}" for problem in helm.lint(values))
            rendered = helm.render(values)
            for template, text in rendered.items():
                if template != NOTES:
                    yield from (f"{set_name}: {template}: {problem}" for problem in yaml_problems(text))
            new = [document for document in objects_in(rendered) if document not in seen]
            seen += new
            for document in new:
                for version in KUBERNETES:
                    yield from (f"{set_name}: {problem}" for problem in object_problems(document, version))


def main(problems: Iterable[str] | None = None) -> int:
    """Print every problem; the exit code."""
    sets = value_sets()
    found = 0
    for problem in problems if problems is not None else (*dockerfile_problems(), *chart_problems(sets)):
        print(problem)
        found += 1
    if not found:
        print(f"Dockerfile and chart: {len(sets)} sets of values, Kubernetes {', '.join(KUBERNETES)}: no problem")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
