"""`laneway sessions set`: what a session has of its own, beside what was said in it."""

import os
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from laneway.cli.connection import Connection
from laneway.cli.options import AddressOption, JsonOption, KeyArgument, run_async
from laneway.cli.text import json_line, safe
from laneway.v1 import agent_pb2, session_pb2

_ENUMS: dict[str, Any] = {
    "thinking": agent_pb2.ThinkingLevel,
    "verbose": agent_pb2.Verbosity,
    "reasoning": session_pb2.ReasoningVisibility,
    "queue_mode": agent_pb2.QueueMode,
}
_PREFIXES = {
    "thinking": "THINKING_LEVEL_",
    "verbose": "VERBOSITY_",
    "reasoning": "REASONING_VISIBILITY_",
    "queue_mode": "QUEUE_MODE_",
}
_NAMES = ("model", "thinking", "verbose", "reasoning", "trace", "queue_mode", "label", "pinned", "archived")


def _words(name: str) -> Any:
    """The values of an enum as people write them: `off`, `high`."""
    words = [key.removeprefix(_PREFIXES[name]) for key in _ENUMS[name].keys()[1:]]
    return _choices(name, words)


def _choices(name: str, words: Sequence[str]) -> Any:
    """An enum that typer offers as the values of an option."""
    members = [(word.upper(), word.lower()) for word in words]
    make: Any = StrEnum
    return make(name, members)


_Thinking: Any = _words("thinking")
_Verbose: Any = _words("verbose")
_Reasoning: Any = _words("reasoning")
_QueueMode: Any = _words("queue_mode")
_Name: Any = _choices("name", _NAMES)


def set_(
    key: KeyArgument,
    *,
    model: Annotated[str | None, typer.Option(metavar="PROVIDER/MODEL", help="Of the messages to come.")] = None,
    thinking: Annotated[_Thinking | None, typer.Option(help="How hard the model thinks.")] = None,
    verbose: Annotated[_Verbose | None, typer.Option(help="What watchers see of tool calls.")] = None,
    reasoning: Annotated[_Reasoning | None, typer.Option(help="How the model's reasoning is shown.")] = None,
    trace: Annotated[bool | None, typer.Option("--trace/--no-trace", help="Lines about the service's work.")] = None,
    queue_mode: Annotated[_QueueMode | None, typer.Option(help="What a message does while a run goes on.")] = None,
    label: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    pinned: Annotated[bool | None, typer.Option("--pin/--no-pin", help="Retention leaves it alone.")] = None,
    archived: Annotated[bool | None, typer.Option("--archive/--no-archive", help="It takes no messages.")] = None,
    clear: Annotated[list[_Name] | None, typer.Option(help="Back to the agent's; may be given again.")] = None,
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """Set what a session has of its own: its model, how much is shown, its label.

    What is not given stays as it is. It counts for the messages accepted from then on.

    Examples:
      laneway sessions set demo --model openai/gpt-5.2 --thinking high
      laneway sessions set demo --label "Travel plans" --pin
      laneway sessions set demo --clear model --clear thinking
    """
    words = {"thinking": thinking, "verbose": verbose, "reasoning": reasoning, "queue_mode": queue_mode}
    values: dict[str, Any] = {"model": model, "trace": trace, "label": label, "pinned": pinned, "archived": archived}
    for name, word in words.items():
        values[name] = None if word is None else _ENUMS[name].Value(f"{_PREFIXES[name]}{word.name}")
    cleared = [str(name.value) for name in clear or []]
    if not cleared and all(value is None for value in values.values()):
        raise typer.BadParameter("say what to set: --model, --label ...; `laneway sessions set --help` lists all")
    session = run_async(_set(key, address, values, cleared))
    print(json_line(session, all_fields=True) if json else settings_line(session) or "nothing is set")


async def _set(key: str, address: str | None, values: dict[str, Any], clear: list[str]) -> session_pb2.Session:
    async with Connection(address, os.environ) as connection:
        return await connection.client.sessions.update(key, clear=clear, **values)


def settings_line(session: session_pb2.Session) -> str:
    """What is set, in one line; empty when nothing is."""
    words = []
    for name in _NAMES:
        value = getattr(session, name)
        if name in _ENUMS and value:
            words.append(f"{name.replace('_', ' ')} {_ENUMS[name].Name(value).removeprefix(_PREFIXES[name]).lower()}")
        elif name == "trace" and session.HasField("trace"):
            words.append("trace on" if session.trace else "trace off")
        elif value is True:
            words.append(name)
        elif isinstance(value, str) and value:
            words.append(f"{name} {safe(value)}")
    return " | ".join(words)
