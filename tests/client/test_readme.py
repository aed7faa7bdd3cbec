"""The example of the README runs as it stands there."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.model_server import ModelServer, text_answer
from tests.fakes.service import running_service

README = Path(__file__).parents[2] / "clients" / "python" / "README.md"


async def test_the_example_shows_a_run(tmp_path: Path, model: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    example = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    model.answer(text_answer("Two files."))
    toml = '[agents.defaults]\nmodel = "mock/any"\n'
    async with running_service(tmp_path / "home", model=model, toml=toml) as service:
        code = example.replace("127.0.0.1:50551", service.target).replace("asyncio.run(main())", "")
        names: dict[str, Any] = {}
        exec(compile(code, str(README), "exec"), names)  # noqa: S102
        async with asyncio.timeout(20):
            await names["main"]()
    shown = capsys.readouterr().out
    assert re.fullmatch(r"run run_[0-9a-f-]+\nTwo files\.\nended: stop\n", shown)
