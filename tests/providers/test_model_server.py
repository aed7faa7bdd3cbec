"""tests/fakes/model_server.py on its own: the models that its names ask for, and the process that soaks start."""

import asyncio
import json
import sys
from contextlib import aclosing

from tests.fakes.model_answers import text_answer
from tests.fakes.model_server import ModelServer

from lanewayd.clock import SystemClock
from lanewayd.messages import Message, ToolResultMessage, ToolSpec, UserMessage
from lanewayd.providers.call_ids import random_call_id
from lanewayd.providers.http_provider import HttpProvider, HttpService
from lanewayd.providers.interface import Done, ModelRequest
from lanewayd.providers.openai_chat.dialect import OpenAIChat


async def ask(base_url: str, model: str, *tools: str) -> list[str]:
    """Run the loop of a model until it calls no tools; the texts of its answers and the arguments of its calls."""
    dialect = OpenAIChat(new_call_id=random_call_id)
    provider = HttpProvider(service=HttpService("mock", base_url), dialect=dialect, clock=SystemClock())
    messages: list[Message] = [UserMessage("go")]
    said: list[str] = []
    try:
        while True:
            request = ModelRequest(model, "", tuple(messages), tuple(ToolSpec(name, "") for name in tools))
            async with aclosing(provider.stream(request)) as events:
                done = [event async for event in events][-1]
            assert isinstance(done, Done), done
            said.append(done.message.text)
            messages.append(done.message)
            for call in done.message.tool_calls:
                said.append(call.arguments_json)
                messages.append(ToolResultMessage(call.call_id, call.name, "r"))
            if not done.message.tool_calls:
                return said
    finally:
        await provider.close()


async def test_a_name_asks_for_tokens_and_tool_rounds() -> None:
    async with ModelServer() as server:
        said = await ask(server.base_url, "tokens-3-0-tools-2", "other", "ledger")
        assert said[0] == said[2] == said[4] == "token0 token1 token2 "
        assert [json.loads(said[1])["token"], json.loads(said[3])["token"]] == server.sent_tokens
        assert len(server.requests) == 3
        assert all(request.ended_at for request in server.requests[:2])


async def test_answers_go_to_their_model_first() -> None:
    async with ModelServer() as server:
        server.answer(text_answer("for a"), model="a")
        server.answer(text_answer("for whoever"))
        assert await ask(server.base_url, "b") == ["for whoever"]
        assert await ask(server.base_url, "a") == ["for a"]
        assert await ask(server.base_url, "a") == ["ok"]


async def test_it_runs_as_a_process_of_its_own() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fakes.model_server", "--port", "0", "--exec-command", "echo {token} >> ledger",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        base_url = (await process.stdout.readline()).decode().strip()
        said = await ask(base_url, "tokens-1-0-tools-1", "exec")
        assert said[0] == "token0 "
        assert json.loads(said[1])["command"].endswith(" >> ledger")
    finally:
        process.kill()
        await process.communicate()
