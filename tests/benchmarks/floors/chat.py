"""What the two agent floors share: the loop of a run as plainly as it can be written.

A request with the conversation, an answer read to its end, its deltas handed on, calls of the tool `noop` answered by
`ok` until the model stops. The run lives in memory and is forgotten when its Wait was answered.
"""

import json
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx

from laneway.v1 import agent_pb2, event_pb2, run_pb2

_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "noop",
            "description": "Does nothing.",
            "parameters": {"type": "object", "properties": {}},
        },
    }
]

Lines = Callable[[httpx.Response], AsyncIterator[str | bytes]]
"""The data lines of an event stream."""


def new_run_id() -> str:
    return f"run_{uuid.uuid4().hex}"


async def converse(
    client: httpx.AsyncClient, lines: Lines, request: agent_pb2.AgentRequest, on_delta: Callable[[str], None]
) -> None:
    """Call the model, and the tool it asks for, until it answers without a call."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a helpful agent."},
        {"role": "user", "content": request.message},
    ]
    model = request.model.partition("/")[2]
    while True:
        body = {"model": model, "messages": messages, "stream": True, "tools": _TOOLS}
        text: list[str] = []
        calls: list[dict[str, Any]] = []
        async with client.stream("POST", "/chat/completions", json=body) as response:
            response.raise_for_status()
            async for data in lines(response):
                _take(json.loads(data), text, calls, on_delta)
        if not calls:
            return
        messages.append({"role": "assistant", "content": "".join(text), "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]


def _take(chunk: dict[str, Any], text: list[str], calls: list[dict[str, Any]], on_delta: Callable[[str], None]) -> None:
    for choice in chunk["choices"]:
        delta = choice["delta"]
        if content := delta.get("content"):
            text.append(content)
            on_delta(content)
        calls += delta.get("tool_calls", ())


def delta_event(run_id: str, text: str) -> event_pb2.Event:
    return event_pb2.Event(run_id=run_id, assistant=event_pb2.AssistantEvent(delta=text))


def end_event(run_id: str) -> event_pb2.Event:
    lifecycle = event_pb2.LifecycleEvent(
        phase=event_pb2.LIFECYCLE_PHASE_END, state=run_pb2.RUN_STATE_SUCCEEDED, stop_reason="stop"
    )
    return event_pb2.Event(run_id=run_id, lifecycle=lifecycle)


def wait_answer(run_id: str) -> agent_pb2.WaitResponse:
    return agent_pb2.WaitResponse(
        run_id=run_id, status=agent_pb2.WAIT_STATUS_OK, state=run_pb2.RUN_STATE_SUCCEEDED, stop_reason="stop"
    )
