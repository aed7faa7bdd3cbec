"""What the pages on Kubernetes show: values that the chart takes, commands that Helm and `laneway` know.

There is no cluster in the tests, so kubectl and docker are not called; what they hand to `laneway` is.
"""

import itertools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.dockerfile import read_dockerfile
from tests.deploy.helm import CHART, REPOSITORY, Helm

PAGES = [REPOSITORY / "docs" / "kubernetes.md", CHART / "README.md"]
LANEWAY = Path(sys.executable).parent / "laneway"


def blocks(language: str) -> list[str]:
    """The blocks of a language on all pages."""
    texts = [path.read_text() for path in PAGES]
    return [
        block for text in texts for block in re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def commands() -> list[list[str]]:
    """All shell commands on all pages, as words."""
    lines = "\n".join(blocks("bash")).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.strip()]


def laneway_commands() -> list[list[str]]:
    """What pods and containers are told to run; as the arguments of `laneway`."""
    inside = [words[words.index("--") + 2 :] for words in commands() if "exec" in words and "--" in words]
    images = [words[words.index("serve") :] for words in commands() if words[:2] == ["docker", "run"]]
    return [*inside, *images]


def assignments(words: list[str]) -> Iterator[tuple[list[str], Any]]:
    """The path and value of each --set."""
    for flag, text in itertools.pairwise(words):
        if flag == "--set":
            name, _, value = text.partition("=")
            yield name.split("."), yaml.safe_load(value)


def test_all_values_on_the_pages_fit_the_chart() -> None:
    shown = [yaml.safe_load(block) for block in blocks("yaml")]
    assert len(shown) >= 5
    with Helm() as helm:
        for values in shown:
            assert helm.render(values)


def test_helm_commands_name_the_chart_and_values_it_takes() -> None:
    shown = [words for words in commands() if words[:2] in (["helm", "install"], ["helm", "upgrade"])]
    assert len(shown) >= 3
    with Helm() as helm:
        for words in shown:
            assert (REPOSITORY / words[3] / "Chart.yaml").is_file()
            values: dict[str, Any] = {}
            for path, value in assignments(words):
                section = values
                for name in path[:-1]:
                    section = section.setdefault(name, {})
                section[path[-1]] = value
            release = helm.render(values, name=words[2], namespace="agents")
            names = {yaml.safe_load(release["statefulset.yaml"])["metadata"]["name"]}
            assert names == {"agents-laneway"}  # as kubectl is told to look for


@pytest.mark.parametrize("arguments", laneway_commands(), ids=" ".join)
def test_commands_inside_the_pod_exist_with_their_options(arguments: list[str]) -> None:
    names = [word for word in arguments if re.fullmatch("[a-z]+", word)]
    done = subprocess.run(
        [LANEWAY, *names, "--help"], capture_output=True, text=True, check=True, env={"COLUMNS": "200", "PATH": "/bin"}
    )
    for option in (word for word in arguments if word.startswith("--")):
        assert option in done.stdout


def test_the_run_command_of_docker_is_the_one_in_the_dockerfile() -> None:
    (shown,) = [words for words in commands() if words[:2] == ["docker", "run"]]
    text = (REPOSITORY / "Dockerfile").read_text()
    for option in (word for word in shown if word.startswith("--")):
        assert option in text
    expose = [each.text for each in read_dockerfile() if each.name == "EXPOSE"]
    assert expose == ["50551"]
