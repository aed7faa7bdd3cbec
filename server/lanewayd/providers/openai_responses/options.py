"""The fields of a request to /responses beside its input: tools, reasoning, limits, schema, cache. Pure.

Source: spec 04, 3.2 and 10.2; OpenAI's API reference, "Create a model response". There is no seed in this language. A
field of which nothing was asked is not sent.
"""

from typing import Any

from lanewayd.messages import ToolSpec
from lanewayd.providers.answer_schema import is_object_schema, named_schema
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.openai_models import cache_fields, holds_schema, takes_temperature
from lanewayd.providers.reasoning_effort import NOT_AT_ALL, cannot_think, reasoning_effort

ENCRYPTED_REASONING = "reasoning.encrypted_content"


def request_options(request: ModelRequest, *, is_openai: bool) -> dict[str, Any]:
    """The fields, by their names."""
    options: dict[str, Any] = {"stream": True, "store": False}
    # OpenAI answers with 400 when it is asked for the encrypted reasoning of a model that does not reason.
    if not cannot_think(request.model, request.facts):
        options["include"] = [ENCRYPTED_REASONING]
    if request.tools:
        options["tools"] = [_tool(spec) for spec in request.tools]
    effort = reasoning_effort(request.model, request.thinking, request.facts)
    if effort is not None:
        # Without a summary nothing readable comes of the reasoning.
        options["reasoning"] = {"effort": effort} | ({"summary": "auto"} if effort != NOT_AT_ALL else {})
    if request.output_cap:
        options["max_output_tokens"] = request.output_cap
    if request.temperature is not None and takes_temperature(request.model, effort):
        options["temperature"] = request.temperature
    if request.response_schema is not None and has_native_schema(request):
        options["text"] = {"format": {"type": "json_schema", **named_schema(request.response_schema)}}
    return options | (cache_fields(request) if is_openai else {})


def has_native_schema(request: ModelRequest) -> bool:
    """As `Dialect.has_native_schema`."""
    return is_object_schema(request.response_schema) and holds_schema(request.model)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    # Without a word about it, schemas are made strict here, and those with optional properties refused.
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.schema,
        "strict": False,
    }
