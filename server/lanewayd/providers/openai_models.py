"""What sets OpenAI's models apart in a request, by their names; also where another service serves them. Pure.

Facts of August to November 2026: developers.openai.com/api/docs/guides/reasoning, /prompt-caching, /structured-outputs,
/deployment-checklist, and what their servers answer with 400 (openai/openai-openapi issue 541, BerriAI/litellm 34569).
"""

import hashlib
import re
from typing import Any

from lanewayd.providers.interface import ModelRequest

_MAX_CACHE_KEY_CHARS = 64
_NEVER_REASONS = re.compile(r"gpt-[34]|chatgpt-|gpt-5(?:\.\d+)?-chat")
_TAKES_NO_TEMPERATURE = re.compile(r"gpt-5\.[6-9](?!\d)|gpt-5(?![\d.])(?!-chat)|o\d")
# These take one while they do not think: the first by themselves, the others if they are told not to.
_THINKS_IF_TOLD = re.compile(r"gpt-5\.[1-4](?!\d)(?!-chat)")
_THINKS_UNLESS_TOLD = re.compile(r"gpt-5\.5(?!\d)|gpt-6")
_KNOWS_NO_SCHEMA = re.compile(r"gpt-3|gpt-4(?![.o])|chatgpt-|o1-(?:mini|preview)")
_KEEPS_CACHE_LONG = re.compile(r"(?:gpt-[56]|gpt-4\.1)(?!.*-(?:mini|nano))")
_THINKS_WITHOUT_TOOLS_ONLY = re.compile(r"gpt-5\.[2-5](?!\d)|gpt-6")
_MUST_DENY_THINKING = re.compile(r"gpt-5\.[6-9](?!\d)|gpt-6(?:-(?:sol|luna)|\.1-terra)")


def bare_name(model: str) -> str:
    """The model's own name: without what a gateway puts before it, in lower case."""
    return model.rpartition("/")[2].lower()


def never_reasons(model: str) -> bool:
    """Whether it is one of OpenAI's models that answer without reasoning."""
    return bool(_NEVER_REASONS.match(bare_name(model)))


def takes_temperature(model: str, effort: str | None) -> bool:
    """Whether a request with this effort may name a temperature (R-4.32): models that reason refuse it."""
    name = bare_name(model)
    if _TAKES_NO_TEMPERATURE.match(name):
        return False
    if _THINKS_UNLESS_TOLD.match(name):
        return effort == "none"
    return effort in (None, "none") or not _THINKS_IF_TOLD.match(name)


def holds_schema(model: str) -> bool:
    """Whether the model can be held to a JSON Schema; those before gpt-4o cannot."""
    return not _KNOWS_NO_SCHEMA.match(bare_name(model))


def effort_beside_tools(model: str, effort: str | None) -> str | None:
    """What OpenAI's chat completions take as the effort where tools are offered.

    From gpt-5.2 on they refuse any but `none` there, and the newer ones also a request that does not say it. A few of
    the newest, which cannot but think, call no tools in that language at all: the service's answer says so.
    """
    name = bare_name(model)
    if _MUST_DENY_THINKING.match(name):
        return "none"
    return None if _THINKS_WITHOUT_TOOLS_ONLY.match(name) else effort


def cache_fields(request: ModelRequest) -> dict[str, Any]:
    """The fields that help OpenAI find a session's prompt in its cache, and keep it there for a day if that is wished
    (spec 04, 10.2). No key is longer than OpenAI takes."""
    if request.cache_retention not in ("short", "long") or not request.cache_key:
        return {}
    key = request.cache_key
    if len(key) > _MAX_CACHE_KEY_CHARS:
        key = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
    fields = {"prompt_cache_key": key}
    if request.cache_retention == "long" and _KEEPS_CACHE_LONG.match(bare_name(request.model)):
        fields["prompt_cache_retention"] = "24h"
    return fields
