"""The examples of the README run as they stand there."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.model_answers import text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.service import running_service

from laneway.client import LanewayClient

README = Path(__file__).parents[2] / "clients" / "python" / "README.md"


TOML = '[agents.defaults]\nmodel = "mock/any"\n'


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


async def test_a_file_goes_along_as_shown(tmp_path: Path, model: ModelServer) -> None:
    file = tmp_path / "list.txt"
    file.write_text("milk, bread")
    model.answer(text_answer("A list."))
    names: dict[str, Any] = {}
    exec(compile(examples()[1], str(README), "exec"), names)  # noqa: S102
    async with (
        running_service(tmp_path / "home", model=model, toml=TOML) as service,
        LanewayClient(service.target) as client,
    ):
        assert await names["ask_about"](client, file) == "A list."
    assert model.requests[0].messages[-1]["content"] == "What is this?\n[list.txt]\n```\nmilk, bread\n```"


async def test_the_example_shows_a_run(tmp_path: Path, model: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    example = examples()[0]
    model.answer(text_answer("Two files."))
    async with running_service(tmp_path / "home", model=model, toml=TOML) as service:
        code = example.replace("127.0.0.1:50551", service.target).replace("asyncio.run(main())", "")
        names: dict[str, Any] = {}
        exec(compile(code, str(README), "exec"), names)  # noqa: S102
        async with asyncio.timeout(20):
            await names["main"]()
    shown = capsys.readouterr().out
    assert re.fullmatch(r"run run_[0-9a-f-]+\nTwo files\.\nended: stop\n", shown)
