"""Tool calls of local models: which tools are asked about, the schema of the answer, the answer as a call. Pure.

A model without tool calls of its own is asked for one JSON object, `{"tool": <name> | "none", "arguments": {...}}`,
that a grammar made from the schema enforces. What it names is a normal tool call; after "none" it is asked for text.

The embedded model cannot choose: asked whether it needs a tool it always declines (measured). It does fill in the
arguments of a tool that it must use. So it uses a tool when the message names one, `use the tool exec to ...`, and is
not asked otherwise. That is also the safe way: a model of this size must not decide to run commands by itself.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lanewayd.messages import AssistantMessage, Message, ToolCall, ToolSpec, UserMessage

NO_TOOL = "none"
MOST_CALLS_PER_MESSAGE = 8
"""Calls in answer to one message of the user; a small model that goes round in circles is stopped by it."""


@dataclass(frozen=True, slots=True)
class ToolQuestion:
    """What the model is asked: one of `tools`, or none if it `may_decline`.

    `is_brief`: without the arguments that a call can do without; a small model would fill them with nonsense.
    """

    tools: tuple[ToolSpec, ...]
    may_decline: bool
    is_brief: bool

    @property
    def instruction(self) -> str:
        """For the end of the last message: what there is and what to answer."""
        lines = [f"- {tool.name}: {self._purpose(tool)} Arguments: {self._arguments(tool)}" for tool in self.tools]
        answer = 'Answer with one JSON object: {"tool": NAME, "arguments": {...}}'
        if self.may_decline:
            answer += f', or {{"tool": "{NO_TOOL}", "arguments": {{}}}} if no tool is needed'
        return "\n".join(["Tools:", *lines, f"{answer}."])

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the answer."""
        answers = [_answer(tool.name, self._schema(tool)) for tool in self.tools]
        if self.may_decline:
            answers.append(_answer(NO_TOOL, {"type": "object", "properties": {}, "additionalProperties": False}))
        return answers[0] if len(answers) == 1 else {"anyOf": answers}

    def call_in(self, answer: str, messages: Sequence[Message], *, call_id: str) -> ToolCall | None:
        """The call that `answer` asks for; None for "none", for what is no call of an offered tool, and for one that
        was made before in answer to the same message."""
        try:
            decided = json.loads(answer)
        except (ValueError, RecursionError):
            return None  # cut off by the limit of an answer: the grammar lets nothing else through
        if not isinstance(decided, dict) or not isinstance(decided.get("arguments"), dict):
            return None
        name, arguments = decided.get("tool"), decided["arguments"]
        if all(tool.name != name for tool in self.tools):
            return None
        is_repeated = any(call.name == name and _parsed(call) == arguments for call in _calls_since(messages))
        return None if is_repeated else ToolCall(call_id, str(name), json.dumps(arguments, ensure_ascii=False))

    def _purpose(self, tool: ToolSpec) -> str:
        return tool.description.split(". ")[0].rstrip(".") + "." if self.is_brief else tool.description

    def _arguments(self, tool: ToolSpec) -> str:
        required = set(tool.schema.get("required", ()))
        names = self._schema(tool).get("properties", {})
        return ", ".join(name if name in required else f"{name} (optional)" for name in names) or "none"

    def _schema(self, tool: ToolSpec) -> dict[str, Any]:
        required = set(tool.schema.get("required", ()))
        if not (self.is_brief and required):
            return tool.schema
        properties = {name: schema for name, schema in tool.schema.get("properties", {}).items() if name in required}
        return {**tool.schema, "properties": properties}


def question_about(
    tools: Sequence[ToolSpec], messages: Sequence[Message], *, chooses_by_itself: bool
) -> ToolQuestion | None:
    """What to ask before the next answer; None: nothing, the answer is text.

    A tool that the user's last message names and that has not been called for it must be used, the first one at least.
    Others are offered only to a model that `chooses_by_itself`.
    """
    calls = _calls_since(messages)
    if not tools or len(calls) >= MOST_CALLS_PER_MESSAGE:
        return None
    asked = _last_words(messages)
    called = {call.name for call in calls}
    named = tuple(tool for tool in tools if tool.name not in called and is_named(tool.name, asked))
    if named:
        return ToolQuestion(named, may_decline=bool(calls), is_brief=not chooses_by_itself)
    return ToolQuestion(tuple(tools), may_decline=True, is_brief=False) if chooses_by_itself else None


def is_named(tool: str, text: str) -> bool:
    """Whether `text` names the tool as one: "the tool X", "the X tool", "use X", "call X", "with X.", X in backticks.

    Names of tools are common words: "read this" and "write a poem" name none.
    """
    name = re.escape(tool)
    patterns = (
        rf"\b(?:tool|use|using|call|invoke)\s+(?:the\s+)?(?:tool\s+)?[`\"']?{name}\b",
        rf"\b{name}[`\"']?\s+tool\b",
        rf"\bwith\s+[`\"']?{name}[`\"']?\s*(?:[.,;:!?]|$)",
        rf"`{name}`",
    )
    return any(re.search(pattern, text, re.IGNORECASE | re.MULTILINE) for pattern in patterns)


def _last_words(messages: Sequence[Message]) -> str:
    return next((message.text for message in reversed(messages) if isinstance(message, UserMessage)), "")


def _calls_since(messages: Sequence[Message]) -> list[ToolCall]:
    """The calls made in answer to the user's last message."""
    calls: list[ToolCall] = []
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            break
        if isinstance(message, AssistantMessage):
            calls.extend(message.tool_calls)
    return calls


def _parsed(call: ToolCall) -> Any:
    try:
        return json.loads(call.arguments_json)
    except (ValueError, RecursionError):
        return None


def _answer(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"const": name}, "arguments": arguments},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }
