"""The fields of a request to /api/chat beside its messages: tools, thinking, schema, options of the runner. Pure.

Source: spec 04, 3.2, the column Ollama; docs.ollama.com/api/chat and /capabilities/thinking. A field of which nothing
was asked is not sent.
"""

from typing import Any

from lanewayd.messages import ThinkingLevel, ToolSpec
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.reasoning_effort import cannot_think

_THINK: dict[ThinkingLevel, bool | str] = {
    ThinkingLevel.OFF: False,
    ThinkingLevel.MINIMAL: "low",
    ThinkingLevel.LOW: "low",
    ThinkingLevel.MEDIUM: "medium",
    ThinkingLevel.HIGH: "high",
    ThinkingLevel.XHIGH: "high",
    ThinkingLevel.MAX: "high",
    ThinkingLevel.ADAPTIVE: "medium",
    ThinkingLevel.ULTRA: "high",
}
_FULL_EFFORT = (ThinkingLevel.MAX, ThinkingLevel.ULTRA)


def request_options(request: ModelRequest) -> dict[str, Any]:
    """The fields, by their names."""
    fields: dict[str, Any] = {"stream": True}
    if request.tools:
        fields["tools"] = [_tool(spec) for spec in request.tools]
    think = _think(request)
    if think is not None:
        fields["think"] = think
    if has_native_schema(request):
        fields["format"] = request.response_schema
    if options := _runner_options(request):
        fields["options"] = options
    return fields


def has_native_schema(request: ModelRequest) -> bool:
    """As `Dialect.has_native_schema`. Beside tools there is none: the grammar of a schema lets no call through."""
    return request.response_schema is not None and not request.tools


def _think(request: ModelRequest) -> bool | str | None:
    """What to send as `think`; None: nothing. A model that cannot think refuses the field."""
    level, facts = request.thinking, request.facts
    if level is None or cannot_think(request.model, facts):
        return None
    if level.value in facts.effort_map:
        return facts.effort_map[level.value]
    if facts.thinking_format:
        # On or off is all that models other than gpt-oss know before Ollama 0.20.
        return level is not ThinkingLevel.OFF
    if level in _FULL_EFFORT and ThinkingLevel.MAX in facts.thinking_levels:
        return "max"
    return _THINK[level]


def _runner_options(request: ModelRequest) -> dict[str, Any]:
    """Ollama cuts what does not fit its context without a word, so it is told the size that the model is known to have
    (R-5.93); of a model that nobody knows, nothing is said: the size costs memory."""
    options: dict[str, Any] = {}
    if request.facts.is_known:
        options["num_ctx"] = request.facts.context_window
    if request.output_cap:
        options["num_predict"] = request.output_cap
    if request.temperature is not None:
        options["temperature"] = request.temperature
    if request.seed is not None:
        options["seed"] = request.seed
    return options


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return {"type": "function", "function": function}
