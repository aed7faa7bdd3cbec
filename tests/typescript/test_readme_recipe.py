"""The recipe for TypeScript in the README at the root runs as it stands there."""

import asyncio
import os
import re
from pathlib import Path

from tests.fakes.model_answers import text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.server_process import ServerProcess

README = Path(__file__).parents[2] / "README.md"
END_S = 30


async def test_the_recipe_prints_the_answer(typescript: Path, server: ServerProcess, model: ModelServer) -> None:
    recipe, shown = re.findall(r"```ts\n(.*?)```\n+```text\n(.*?)```", README.read_text(), re.DOTALL)[0]
    model.answer(text_answer("The capital of France ", "is Paris."))
    server.toml += '[agents.defaults]\nmodel = "mock/any"\n'
    await server.start()
    # In the folder of the package its name stands for itself. The recipe has no types, so it is JavaScript as well.
    process = await asyncio.create_subprocess_exec(
        "node",
        "--input-type=module",
        "--eval",
        recipe.replace("127.0.0.1:50551", server.target),
        cwd=typescript,
        env={"PATH": os.environ["PATH"]},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(END_S):
        output, _ = await process.communicate()
    assert (output.decode(), process.returncode) == (shown.strip(), 0)
