"""The fields of a chat completions request beside its messages: tools, thinking, limits, schema, cache. Pure.

Source: spec 04, 3.2 and 10.2; OpenAI's API reference, "Create chat completion"; for the thinking formats the manuals of
Qwen, vLLM ("chat_template_kwargs") and Together ("reasoning"). A field of which nothing was asked is not sent.
"""

from typing import Any

from lanewayd.messages import ModelFacts, ThinkingLevel, ToolSpec
from lanewayd.providers.answer_schema import is_object_schema, named_schema
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.openai_chat.manners import ChatManners
from lanewayd.providers.openai_models import cache_fields, effort_beside_tools, holds_schema, takes_temperature
from lanewayd.providers.reasoning_effort import cannot_think, reasoning_effort


def request_options(request: ModelRequest, manners: ChatManners) -> dict[str, Any]:
    """The fields, by their names."""
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    if request.tools:
        options["tools"] = [_tool(spec) for spec in request.tools]
    thinking = _thinking(request, manners)
    options |= thinking
    if request.output_cap:
        options["max_completion_tokens" if manners.is_openai else "max_tokens"] = request.output_cap
    if request.temperature is not None and takes_temperature(request.model, thinking.get("reasoning_effort")):
        options["temperature"] = request.temperature
    if request.seed is not None:
        options["seed"] = request.seed
    if request.response_schema is not None and has_native_schema(request, manners):
        options["response_format"] = {"type": "json_schema", "json_schema": named_schema(request.response_schema)}
    return options | (cache_fields(request) if manners.is_openai else {})


def has_native_schema(request: ModelRequest, manners: ChatManners) -> bool:
    """As `Dialect.has_native_schema`."""
    return manners.holds_schemas and is_object_schema(request.response_schema) and holds_schema(request.model)


def _thinking(request: ModelRequest, manners: ChatManners) -> dict[str, Any]:
    """How much to think: as an effort, or in the way that the model's facts name."""
    switch = _switch(request.model, request.thinking, request.facts)
    if switch:
        return switch
    effort = reasoning_effort(request.model, request.thinking, request.facts)
    if manners.is_openai and request.tools:
        effort = effort_beside_tools(request.model, effort)
    return {} if effort is None else {"reasoning_effort": effort}


def _switch(model: str, level: ThinkingLevel | None, facts: ModelFacts) -> dict[str, Any]:
    """On or off (R-4.31, R-4.33); nothing for models that take an effort, and for formats that are not known."""
    if level is None or cannot_think(model, facts):
        return {}
    is_on = level is not ThinkingLevel.OFF
    match facts.thinking_format:
        case "zai" | "qwen":
            return {"enable_thinking": is_on}
        case "qwen-chat-template":
            return {"chat_template_kwargs": {"enable_thinking": is_on}}
        case "together":
            return {"reasoning": {"enabled": is_on}}
        case _:
            return {}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return {"type": "function", "function": function}
