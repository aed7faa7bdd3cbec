"""The package as its users and maintainers have it: types, style, generated code, lock file, README, unit tests."""

import json
import re
import sys
from pathlib import Path

import pytest
from tests.typescript.conftest import CLIENT, INSTALL_S, run, what_is_missing

pytestmark = pytest.mark.timeout(INSTALL_S + 60)


def files_below(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def test_types_and_style_hold(typescript: Path) -> None:
    run("npm", "run", "check")


def test_generated_code_is_up_to_date(typescript: Path, tmp_path: Path) -> None:
    run("./generate.sh", str(tmp_path / "gen"), PYTHON=sys.executable)
    assert files_below(tmp_path / "gen") == files_below(typescript / "src" / "gen"), "run `make protos`"


def test_the_rules_and_the_client_hold_against_a_scripted_service(typescript: Path) -> None:
    tests = sorted(str(path.relative_to(CLIENT)) for path in (CLIENT / "dist" / "test" / "unit").glob("*.test.js"))
    output = run("node", "--test", "--test-timeout=20000", "--test-reporter=tap", *tests)
    passed = re.search(r"^# pass (\d+)$", output, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) > 20, output


def test_the_readme_shows_the_example() -> None:
    first = re.findall(r"```ts\n(.*?)```", (CLIENT / "README.md").read_text(), re.DOTALL)[0]
    assert first == (CLIENT / "examples" / "chat.ts").read_text()


def test_dependencies_are_pinned_with_hashes_and_without_places() -> None:
    package = json.loads((CLIENT / "package.json").read_text())
    assert set(package["dependencies"]) == {"@bufbuild/protobuf", "@grpc/grpc-js"}
    wanted = {**package["dependencies"], **package["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    text = (CLIENT / "package-lock.json").read_text()
    assert "://" not in re.sub(r'"(url|homepage)": "[^"]*"', "", text), "the lock file says where packages are fetched"
    locked = json.loads(text)["packages"]
    assert {name: locked[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert all(entry["integrity"].startswith("sha512-") for name, entry in locked.items() if name)


def test_without_node_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert what_is_missing() == "node and npm not installed"
    for name, text in {"node": "#!/bin/sh\necho v18.19.0\n", "npm": ""}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    assert what_is_missing() == "node is v18.19.0, 20.3 or newer is needed"


def test_a_command_that_fails_is_told() -> None:
    with pytest.raises(pytest.fail.Exception, match="`sh -c echo out; exit 3` ended with 3:\nout"):
        run("sh", "-c", "echo out; exit 3")
