"""Jobs that keep a server busy: so many sessions, each beginning a new run when its last one has ended."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.driver.agent_client import AgentClient
from tests.benchmarks.mock_model import text_of, tokens_in

SESSIONS_PER_CONNECTION = 32

Result = dict[str, Any]


@dataclass(slots=True)
class _Figures:
    accept_ms: list[float] = field(default_factory=list)
    run_ms: list[float] = field(default_factory=list)
    ended_at: list[float] = field(default_factory=list)
    messages: int = 0
    characters: int = 0
    failed: int = 0


async def runs(*, target: str, sessions: int, model: str, count: int, stagger_s: float = 0.0) -> Result:
    """`count` runs over `sessions` sessions: accept, subscribe to the end, wait. Each run is a fresh session.

    `stagger_s` spreads the first runs. Rates come from the middle 80 % of the runs' ends, when all sessions are busy.
    """
    clients = [AgentClient(target) for _ in range(0, sessions, SESSIONS_PER_CONNECTION)]
    figures = _Figures()
    waiting = iter(range(count))
    count_tokens, _, rounds = tokens_in(model)
    expected = text_of(count_tokens) * (rounds + 1)

    async def session(number: int) -> None:
        client = clients[number % len(clients)]
        await asyncio.sleep(stagger_s * number / sessions)
        for _ in waiting:
            await _one_run(client, model, expected, figures)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(sessions):
            group.create_task(session(number), name=f"session {number}")
    elapsed_s = time.perf_counter() - began
    for client in clients:
        await client.close()
    return {
        "accept_ms": figures.accept_ms,
        "run_ms": figures.run_ms,
        "runs_per_s": _rate(sorted(figures.ended_at), elapsed_s),
        "messages_per_run": figures.messages / count,
        "characters_per_run": figures.characters / count,
        "failed": figures.failed,
        "elapsed_s": elapsed_s,
    }


async def _one_run(client: AgentClient, model: str, expected: str, figures: _Figures) -> None:
    began = time.perf_counter()
    run_id = await client.accept(model)
    figures.accept_ms.append((time.perf_counter() - began) * 1000)
    seen = await client.follow(run_id)
    await client.wait(run_id)
    figures.run_ms.append((seen.ended_at - began) * 1000)
    figures.ended_at.append(seen.ended_at)
    text = "".join(seen.text)
    figures.messages += seen.messages
    figures.characters += len(text)
    figures.failed += not seen.has_succeeded or text != expected


def _rate(ended_at: list[float], elapsed_s: float) -> float:
    first, last = len(ended_at) // 10, len(ended_at) * 9 // 10
    if last - first < 10:
        return len(ended_at) / elapsed_s
    return (last - first) / (ended_at[last] - ended_at[first])


async def turns(*, target: str, model: str, session_keys: list[str], count: int) -> Result:
    """`count` further turns in each of the sessions, one after the other in each, the sessions side by side."""
    client = AgentClient(target)
    figures = _Figures()
    count_tokens, _, _ = tokens_in(model)

    async def session(key: str) -> None:
        for _ in range(count):
            began = time.perf_counter()
            run_id = await client.accept(model, session_key=key)
            seen = await client.follow(run_id)
            await client.wait(run_id)
            figures.run_ms.append((seen.ended_at - began) * 1000)
            figures.failed += "".join(seen.text) != text_of(count_tokens)

    await asyncio.gather(*map(session, session_keys))
    await client.close()
    return {"run_ms": figures.run_ms, "failed": figures.failed}
