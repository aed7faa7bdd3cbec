"""AgentRequest -> NewMessage: every check that needs nothing but the request. Pure.

Whatever parses as an AgentRequest gives a NewMessage or a FieldError.
"""

import hashlib
import json

from laneway.v1 import agent_pb2
from lanewayd.errors import ErrorCode, FieldError
from lanewayd.records import Priority
from lanewayd.rpc.attachments import new_attachments
from lanewayd.rpc.convert import check_enum, duration_s, refuse_yet
from lanewayd.rpc.limits import Limits
from lanewayd.rpc.request_fields import check_session_key, check_size
from lanewayd.rpc.structs import json_of
from lanewayd.rpc.wire_text import has_control_characters, size_bytes
from lanewayd.runs.interface import NewMessage

REQUEST_HASH_VERSION = 1
"""Names how `request_hash` is made; a stored key with another version cannot be compared."""

_PRIORITIES = {
    agent_pb2.PRIORITY_UNSPECIFIED: Priority.FOREGROUND,
    agent_pb2.PRIORITY_BACKGROUND: Priority.BACKGROUND,
    agent_pb2.PRIORITY_NORMAL: Priority.NORMAL,
    agent_pb2.PRIORITY_FOREGROUND: Priority.FOREGROUND,
}

QUEUE_MODES = {
    agent_pb2.QUEUE_MODE_UNSPECIFIED: "",
    agent_pb2.QUEUE_MODE_STEER: "steer",
    agent_pb2.QUEUE_MODE_FOLLOWUP: "followup",
    agent_pb2.QUEUE_MODE_COLLECT: "collect",
    agent_pb2.QUEUE_MODE_INTERRUPT: "interrupt",
}
"""Those that this version can do."""

_ENUM_FIELDS = {
    "thinking": agent_pb2.ThinkingLevel,
    "priority": agent_pb2.Priority,
    "queue_mode": agent_pb2.QueueMode,
    "prompt_mode": agent_pb2.PromptMode,
    "bootstrap_context_mode": agent_pb2.BootstrapContextMode,
}

_REFUSED_WHEN_SET = (
    "deliver",
    "best_effort_deliver",
    "prompt_mode",
    "bootstrap_context_mode",
)

_NAME_FIELDS = (
    "agent_id",
    "session_id",
    "model",
    "lane",
    "channel",
    "to",
    "account_id",
    "thread_id",
    "label",
    "parent_run_id",
)
_HOTTEST = 2.0
"""No family takes a higher temperature; some take 1 at most and say so."""
_PROVENANCE_NAMES = ("source_session_key", "source_channel", "source_tool")


def new_message(request: agent_pb2.AgentRequest, *, tenant: str, traceparent: str, limits: Limits) -> NewMessage:
    """The checked request. Raises FieldError: INVALID_ARGUMENT with the reason of the field, or NOT_AVAILABLE_YET."""
    _check_enums(request)
    _refuse_what_has_not_landed(request)
    _check_texts(request, limits)
    check_session_key(request.session_key, limits)
    _check_idempotency_key(request.idempotency_key, limits)
    _check_metadata(request, limits)
    return NewMessage(
        tenant=tenant,
        message=request.message,
        request_hash=request_hash(request),
        hash_version=REQUEST_HASH_VERSION,
        idempotency_key=request.idempotency_key,
        session_key=request.session_key,
        timeout_s=duration_s(request.timeout, "timeout") if request.HasField("timeout") else None,
        priority=_PRIORITIES[request.priority],
        queue_mode=QUEUE_MODES[request.queue_mode],
        extra_system_prompt=request.extra_system_prompt,
        tools_allow=_tool_names(request, "tools_allow", limits),
        tools_deny=_tool_names(request, "tools_deny", limits),
        max_turns=_at_least_one(request, "max_turns", "the agent's setting"),
        thinking=_thinking(request),
        max_output_tokens=_at_least_one(request, "max_output_tokens", "the model's own limit"),
        temperature=_temperature(request),
        seed=request.seed if request.HasField("seed") else None,
        response_schema_json=(
            json_of(request.response_schema, "response_schema", limits.response_schema_bytes)
            if request.HasField("response_schema")
            else ""
        ),
        provenance_json=_provenance_json(request, limits),
        traceparent=traceparent,
        metadata=dict(request.metadata),
        attachments=new_attachments(request.attachments, limits),
        **{field: getattr(request, field) for field in _NAME_FIELDS},
    )


def request_hash(request: agent_pb2.AgentRequest) -> bytes:
    """Digest over all fields of the request but its key, fields that this server does not know included."""
    keyless = agent_pb2.AgentRequest()
    keyless.CopyFrom(request)
    keyless.ClearField("idempotency_key")
    return hashlib.sha256(keyless.SerializeToString(deterministic=True)).digest()


def _check_enums(request: agent_pb2.AgentRequest) -> None:
    for field, enum in _ENUM_FIELDS.items():
        check_enum(enum, getattr(request, field), field)
    check_enum(agent_pb2.ProvenanceKind, request.provenance.kind, "provenance.kind")


def _refuse_what_has_not_landed(request: agent_pb2.AgentRequest) -> None:
    for field in _REFUSED_WHEN_SET:
        if getattr(request, field):
            raise refuse_yet(field)


def _check_texts(request: agent_pb2.AgentRequest, limits: Limits) -> None:
    if size_bytes(request.message) > limits.message_bytes:
        raise FieldError(
            ErrorCode.MESSAGE_TOO_LONG, "message", f"A message has at most {limits.message_bytes:,} bytes."
        )
    if not request.message.strip() and not request.attachments:
        raise FieldError(ErrorCode.MESSAGE_EMPTY, "message", "A message needs a text or an attachment.")
    check_size(request.extra_system_prompt, "extra_system_prompt", limits.extra_system_prompt_bytes)
    for field in _NAME_FIELDS:
        check_size(getattr(request, field), field, limits.name_bytes)


def _check_idempotency_key(key: str, limits: Limits) -> None:
    if size_bytes(key) > limits.idempotency_key_bytes:
        problem = f"An idempotency key has at most {limits.idempotency_key_bytes:,} bytes."
    elif has_control_characters(key):
        problem = "An idempotency key has no control characters."
    elif key and not key.strip():
        problem = "An idempotency key is not blank; leave it out when the call is not to be repeatable."
    else:
        return
    raise FieldError(ErrorCode.IDEMPOTENCY_KEY_MALFORMED, "idempotency_key", problem)


def _check_metadata(request: agent_pb2.AgentRequest, limits: Limits) -> None:
    if len(request.metadata) > limits.metadata_keys:
        raise FieldError(ErrorCode.FIELD_INVALID, "metadata", f"metadata has at most {limits.metadata_keys} keys.")
    for key, value in request.metadata.items():
        if max(size_bytes(key), size_bytes(value)) > limits.metadata_text_bytes:
            raise FieldError(
                ErrorCode.FIELD_INVALID,
                "metadata",
                f"Keys and values of metadata have at most {limits.metadata_text_bytes:,} bytes.",
            )


def _tool_names(request: agent_pb2.AgentRequest, field: str, limits: Limits) -> tuple[str, ...]:
    names = tuple(getattr(request, field))
    if len(names) > limits.tool_names:
        raise FieldError(ErrorCode.FIELD_INVALID, field, f"{field} has at most {limits.tool_names:,} names.")
    for tool_name in names:
        check_size(tool_name, field, limits.name_bytes)
    return names


def _at_least_one(request: agent_pb2.AgentRequest, field: str, absent: str) -> int:
    """The number of a field; 0 when it is absent, which means `absent`."""
    if not request.HasField(field):
        return 0
    number: int = getattr(request, field)
    if number < 1:
        raise FieldError(ErrorCode.FIELD_INVALID, field, f"{field} is at least 1; absent is {absent}.")
    return number


def _thinking(request: agent_pb2.AgentRequest) -> str:
    """The level as records have it; empty when nothing was said."""
    if not request.thinking:
        return ""
    return agent_pb2.ThinkingLevel.Name(request.thinking).removeprefix("THINKING_LEVEL_").lower()


def _temperature(request: agent_pb2.AgentRequest) -> float | None:
    if not request.HasField("temperature"):
        return None
    if not 0 <= request.temperature <= _HOTTEST:  # NaN is not either
        raise FieldError(ErrorCode.FIELD_INVALID, "temperature", f"temperature is between 0 and {_HOTTEST:g}.")
    return request.temperature


def _provenance_json(request: agent_pb2.AgentRequest, limits: Limits) -> str:
    """A JSON object with the fields that are set, the kind in lower case; empty when nothing was said."""
    if not request.HasField("provenance"):
        return ""
    provenance = request.provenance
    said = {field: getattr(provenance, field) for field in _PROVENANCE_NAMES if getattr(provenance, field)}
    for field, text in said.items():
        check_size(text, f"provenance.{field}", limits.name_bytes)
    if provenance.kind:
        said["kind"] = agent_pb2.ProvenanceKind.Name(provenance.kind).removeprefix("PROVENANCE_KIND_").lower()
    return json.dumps(said, sort_keys=True, ensure_ascii=False)
