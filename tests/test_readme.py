"""Runs what README.md and docs/ show: every marked block, in order, on an empty home against real server processes.

A mark is a comment directly before a block, and no block of commands is without one. `<!-- run -->`: a shell or Python
block that must succeed, or end with the code of `exit=N`; `<!-- run: server -->`: a server, which goes on in the
background; `<!-- file: ~/PATH -->`: text of a file. The next unmarked text or json block is the output, whole: in it
`...` stands for any text, alone in a line for any lines, and ids, times and durations for others of their kind.

What cannot be run here says why, `<!-- not run: REASON -->`, or where it is checked, `<!-- checked by: TEST ... -->`.
Settings (toml) are read by a server in any case; what names a model is asked for an answer, by a stand-in.
"""

import asyncio
import os
import re
import shutil
import tempfile
import tomllib
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.fakes.languages import LANGUAGES
from tests.fakes.model_answers import text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.page_reader import BIN, BLOCK, REPOSITORY, Reader, blocks_of, pattern_of
from tests.fakes.service import RunningService

from laneway.v1 import agent_pb2, run_pb2
from lanewayd.app import Seams, Service
from lanewayd.config import Flags, load_settings
from lanewayd.errors import ErrorCode, FieldError
from lanewayd.providers.local.weights import find_weights
from lanewayd.rpc.agent_request import new_message
from lanewayd.rpc.limits import Limits
from lanewayd.settings.reader import setting_names
from lanewayd.settings.schema import Settings

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
COMMANDS = ("sh", "bash", "python", "ts")
CHECKED_AS_A_WHOLE = {"kubernetes.md": "tests/deploy/test_pages.py"}
"""Pages whose commands need what is not here; the test that checks what can be checked of them."""
TALKS_TO_THE_EMBEDDED_MODEL = ("README.md", "demo.md", "local-model.md", "operations.md", "tools.md")


@pytest.fixture
async def reader(model: ModelServer) -> AsyncGenerator[Reader, None]:
    """A reader with an empty home, whose path is short enough for a socket in it."""
    with tempfile.TemporaryDirectory(prefix="readme-") as folder:
        someone = Reader(Path(folder), model.base_url)
        yield someone
        await someone.close()


def pages_that_run() -> list[Path]:
    """The pages with something to run."""
    return [page for page in PAGES if any(block.mark.startswith("run") for block in blocks_of(page.read_text()))]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", pages_that_run(), ids=lambda path: path.name)
async def test_every_marked_block_does_what_the_page_shows(path: Path, reader: Reader, model: ModelServer) -> None:
    page = path.read_text()
    if "grpcurl -" in page and not (BIN / "grpcurl").exists():
        pytest.skip("grpcurl can be installed from the lock file on x86-64 only")
    if path.name in TALKS_TO_THE_EMBEDDED_MODEL and find_weights(None).fault is not None:
        pytest.skip("THE PAGES THAT TALK TO THE EMBEDDED MODEL ARE NOT TESTED: it is not installed")
    if not shutil.which("make"):
        pytest.skip("make is not installed")
    model.answer(*[text_answer("Hello! ", "What can I do for you?", usage=(64, 9)) for _ in range(3)])
    for block in blocks_of(page):
        await reader.do(block)


def test_no_command_is_without_a_mark() -> None:
    for path in PAGES:
        if path.name in CHECKED_AS_A_WHOLE:
            assert path.name in (REPOSITORY / CHECKED_AS_A_WHOLE[path.name]).read_text()
            continue
        for block in BLOCK.finditer(path.read_text()):
            if block["language"] in COMMANDS:
                assert block["mark"], f"{path.name} shows commands that nobody runs:\n{block['body']}"
                kind, _, what = block["mark"].partition(": ")
                assert kind.startswith(("run", "file")) or (kind in ("not run", "checked by") and what), block["mark"]


def test_what_checks_a_block_exists() -> None:
    for path in PAGES:
        for block in blocks_of(path.read_text()):
            kind, _, what = block.mark.partition(": ")
            if kind == "checked by":
                tests = re.findall(r"[\w/]+\.py", what)
                assert tests
                assert all((REPOSITORY / test).is_file() for test in tests), what


def test_the_commands_for_kubernetes_are_those_of_the_pages_that_are_checked() -> None:
    checked = "\n".join((REPOSITORY / page).read_text() for page in ("docs/kubernetes.md", "helm/laneway/README.md"))
    blocks = [block.body for block in blocks_of((REPOSITORY / "README.md").read_text()) if "helm" in block.body]
    commands = [command for block in blocks for command in re.split(r"(?<!\\)\n", block.strip())]
    assert len(commands) == 2
    assert all(command in checked for command in commands)


def test_make_knows_the_goals_that_are_not_run() -> None:
    known = re.findall(r"^([a-z]+):.*##", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    for path in PAGES:
        goals = re.findall(r"^make ([a-z]+)", path.read_text(), re.MULTILINE)
        assert set(goals) <= set(known), path.name


def settings_shown() -> list[str]:
    """All settings on the pages: toml blocks, and those that a command writes into the file."""
    pages = "\n".join(page.read_text() for page in PAGES)
    blocks = re.findall(r"^```toml\n(.*?)^```$", pages, re.MULTILINE | re.DOTALL)
    return blocks + re.findall(r"^cat > ~/\.laneway/laneway\.toml <<'END'\n(.*?)^END$", pages, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("toml", settings_shown(), ids=lambda toml: toml.splitlines()[1].partition("#")[0].strip())
async def test_settings_are_taken_and_models_in_them_are_reached(toml: str, tmp_path: Path, model: ModelServer) -> None:
    file = tmp_path / "laneway.toml"
    file.write_text(toml)
    environ = {"LANEWAY_HOME": str(tmp_path), "HOME": str(tmp_path), "PATH": os.defpath}
    listen = Flags(listen=f"unix:/tmp/laneway-{os.getpid()}-{uuid.uuid4().hex[:8]}.sock")
    settings = load_settings(environ, listen)

    shown = tomllib.loads(toml)
    named = [agent.get("model", "") for agent in (shown.get("agents", {}).get("defaults", {}), *_agents(shown))]
    root = model.base_url.removesuffix("/v1")
    file.write_text(re.sub('base_url = "https?://[^/"]*', f'base_url = "{root}', toml))
    for reference in named:
        provider, _, name = reference.partition("/")
        service = settings.models.providers.get(provider)
        if service is None:
            continue
        base = urlsplit(service.base_url).path
        here = {"LANEWAY_MODELS__PROVIDERS__" + provider.upper() + "__BASE_URL": root + base}
        key = f"key-of-{provider}" if service.api_key_env else None
        keys = {service.api_key_env: key} if service.api_key_env and key else {}
        language = LANGUAGES[service.api]
        model.answer(language.text("ok"))
        await _ask(load_settings(environ | keys | here, listen), environ | keys | here, reference)
        request = model.requests[-1]
        assert request.path == language.path_of(base, name)
        assert request.json.get("model", name) == name
        assert language.key_of(request) == key


def _agents(settings: dict[str, Any]) -> list[dict[str, Any]]:
    return list(settings.get("agents", {}).get("list", {}).values())


async def _ask(settings: Settings, environ: dict[str, str], reference: str) -> None:
    service = Service(settings, Seams(environ=environ))
    await service.start()
    running = RunningService(service, Path(environ["LANEWAY_HOME"]), service.address)
    finished = asyncio.create_task(service.run(), name="service")
    try:
        waited = await running.finish("Say hello", model=reference)
        assert waited.state == run_pb2.RUN_STATE_SUCCEEDED, waited.error
    finally:
        service.request_drain()
        service.request_drain()
        await finished
        await running.close_channel()


def test_fields_that_are_called_unavailable_are_those_that_are_refused() -> None:
    text = (REPOSITORY / "README.md").read_text().partition("`NOT_AVAILABLE_YET`)")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z_]+)`", text))
    refused = set()
    for each in agent_pb2.AgentRequest.DESCRIPTOR.fields:
        request = agent_pb2.AgentRequest(message="hello")
        value = getattr(request, each.name)
        if each.message_type is not None:
            value.add() if hasattr(value, "add") else getattr(value, "SetInParent", int)()
        elif not each.is_repeated:
            setattr(request, each.name, "x" if each.type == each.TYPE_STRING else 1)
        try:
            new_message(request, tenant="default", traceparent="", limits=Limits())
        except FieldError as error:
            if error.code is ErrorCode.NOT_AVAILABLE_YET:
                refused.add(each.name)
    assert refused
    assert named == refused


def test_links_lead_to_files_and_headings_that_exist() -> None:
    for path in PAGES:
        for target in re.findall(r"\]\((?!https?://)([^)]+)\)", path.read_text()):
            file_name, _, heading = target.partition("#")
            file = path.parent / file_name if file_name else path
            assert file.exists(), f"{path.name}: {target}"
            assert not heading or heading in headings_of(file), f"{path.name}: {target}"


def headings_of(file: Path) -> set[str]:
    """The names by which the headings of a page are linked."""
    headings = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_settings_in_the_table_exist() -> None:
    table = (
        (REPOSITORY / "docs" / "operations.md").read_text().partition("| Setting | Default |")[2].partition("\n\n")[0]
    )
    names = re.findall(r"`([a-z_.<>]+)`", " ".join(row.split("|")[1] for row in table.splitlines()[2:]))
    known = setting_names(Settings)
    sections = {name.rpartition(".")[0] for name in known}
    wanted = {re.sub("<[a-z]+>", "NAME", name) for name in names}
    assert len(wanted) > 10
    assert wanted <= {*known, *sections}


def test_a_shown_output_is_compared_as_a_whole() -> None:
    shown = "run run_01a22dc2-... took 12 ms\n...\nlast ... line\n"
    run_id = "run_01a22dbe-527c-7456-90a8-08aea249ad42"
    assert re.fullmatch(pattern_of(shown), f"run {run_id} took 3.5 s\na\nb\nlast of all line\n")
    assert not re.fullmatch(pattern_of(shown), f"run {run_id} took 3.5 s\na\nb\nlast of all line\nmore\n")
    assert not re.fullmatch(pattern_of(shown), "run run_1 took 3.5 s\nlast of all line\n")
