"""The checks of `make check` for image and chart find what is wrong."""

from pathlib import Path

import pytest
from tests.deploy.check import (
    KUBERNETES,
    chart_problems,
    dockerfile_problems,
    main,
    object_problems,
    objects_in,
    value_sets,
    yaml_problems,
)
from tests.deploy.helm import Helm


def test_the_chart_has_no_problem_with_the_smallest_set() -> None:
    assert list(chart_problems({"defaults": value_sets()["defaults"]})) == []


def test_there_are_sets_enough_and_each_has_a_reason() -> None:
    assert len(value_sets()) >= 4
    for path in (Path(__file__).parent / "value_sets").iterdir():
        assert path.read_text().startswith("# "), path


@pytest.mark.parametrize("version", KUBERNETES)
def test_a_field_that_kubernetes_does_not_know_is_found(version: str) -> None:
    with Helm() as helm:
        objects = objects_in(helm.render({}))
    (workload,) = [each for each in objects if each["kind"] == "StatefulSet"]
    assert list(object_problems(workload, version)) == []
    container = workload["spec"]["template"]["spec"]["containers"][0]
    container["livenessProbe"]["grpc"]["services"] = container["livenessProbe"]["grpc"].pop("service")
    (problem,) = object_problems(workload, version)
    assert "services" in problem
    workload["apiVersion"] = "apps/v2"
    (problem,) = object_problems(workload, version)
    assert "schema" in problem


def test_bad_yaml_is_found() -> None:
    assert list(yaml_problems("a: 1\n")) == []
    assert list(yaml_problems("a: 1\na: 2\n"))
    assert list(yaml_problems("mode: 0440\n"))


def test_a_bad_dockerfile_is_found(tmp_path: Path) -> None:
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM debian\nRUN cd /tmp && apt-get install curl\n")
    assert any("DL3006" in problem for problem in dockerfile_problems(bad))
    assert list(dockerfile_problems()) == []


def test_a_problem_is_printed_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["this is wrong"]) == 1
    assert capsys.readouterr().out == "this is wrong\n"
    assert main([]) == 0
