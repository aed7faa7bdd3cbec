import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from laneway.v1 import event_pb2 as _event_pb2
from laneway.v1 import run_pb2 as _run_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ThinkingLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    THINKING_LEVEL_UNSPECIFIED: _ClassVar[ThinkingLevel]
    THINKING_LEVEL_OFF: _ClassVar[ThinkingLevel]
    THINKING_LEVEL_MINIMAL: _ClassVar[ThinkingLevel]
    THINKING_LEVEL_LOW: _ClassVar[ThinkingLevel]
    THINKING_LEVEL_MEDIUM: _ClassVar[ThinkingLevel]
    THINKING_LEVEL_HIGH: _ClassVar[ThinkingLevel]
    THINKING_LEVEL_XHIGH: _ClassVar[ThinkingLevel]
    THINKING_LEVEL_MAX: _ClassVar[ThinkingLevel]
    THINKING_LEVEL_ADAPTIVE: _ClassVar[ThinkingLevel]
    THINKING_LEVEL_ULTRA: _ClassVar[ThinkingLevel]

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_BACKGROUND: _ClassVar[Priority]
    PRIORITY_NORMAL: _ClassVar[Priority]
    PRIORITY_FOREGROUND: _ClassVar[Priority]

class QueueMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUEUE_MODE_UNSPECIFIED: _ClassVar[QueueMode]
    QUEUE_MODE_STEER: _ClassVar[QueueMode]
    QUEUE_MODE_FOLLOWUP: _ClassVar[QueueMode]
    QUEUE_MODE_COLLECT: _ClassVar[QueueMode]
    QUEUE_MODE_INTERRUPT: _ClassVar[QueueMode]

class PromptMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROMPT_MODE_UNSPECIFIED: _ClassVar[PromptMode]
    PROMPT_MODE_FULL: _ClassVar[PromptMode]
    PROMPT_MODE_MINIMAL: _ClassVar[PromptMode]
    PROMPT_MODE_NONE: _ClassVar[PromptMode]

class BootstrapContextMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BOOTSTRAP_CONTEXT_MODE_UNSPECIFIED: _ClassVar[BootstrapContextMode]
    BOOTSTRAP_CONTEXT_MODE_FULL: _ClassVar[BootstrapContextMode]
    BOOTSTRAP_CONTEXT_MODE_LIGHTWEIGHT: _ClassVar[BootstrapContextMode]

class ProvenanceKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROVENANCE_KIND_UNSPECIFIED: _ClassVar[ProvenanceKind]
    PROVENANCE_KIND_EXTERNAL_USER: _ClassVar[ProvenanceKind]
    PROVENANCE_KIND_INTER_SESSION: _ClassVar[ProvenanceKind]
    PROVENANCE_KIND_INTERNAL_SYSTEM: _ClassVar[ProvenanceKind]

class WaitStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WAIT_STATUS_UNSPECIFIED: _ClassVar[WaitStatus]
    WAIT_STATUS_OK: _ClassVar[WaitStatus]
    WAIT_STATUS_ERROR: _ClassVar[WaitStatus]
    WAIT_STATUS_TIMEOUT: _ClassVar[WaitStatus]

class TimeoutKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TIMEOUT_KIND_UNSPECIFIED: _ClassVar[TimeoutKind]
    TIMEOUT_KIND_WAIT_EXPIRED: _ClassVar[TimeoutKind]
    TIMEOUT_KIND_RUN_DEADLINE: _ClassVar[TimeoutKind]
    TIMEOUT_KIND_CANCELLED: _ClassVar[TimeoutKind]
    TIMEOUT_KIND_DRAINING: _ClassVar[TimeoutKind]

class Liveness(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LIVENESS_UNSPECIFIED: _ClassVar[Liveness]
    LIVENESS_WORKING: _ClassVar[Liveness]
    LIVENESS_PAUSED: _ClassVar[Liveness]
    LIVENESS_BLOCKED: _ClassVar[Liveness]
    LIVENESS_ABANDONED: _ClassVar[Liveness]

class View(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VIEW_UNSPECIFIED: _ClassVar[View]
    VIEW_AGENT: _ClassVar[View]
    VIEW_CHAT: _ClassVar[View]

class Verbosity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERBOSITY_UNSPECIFIED: _ClassVar[Verbosity]
    VERBOSITY_OFF: _ClassVar[Verbosity]
    VERBOSITY_ON: _ClassVar[Verbosity]
    VERBOSITY_FULL: _ClassVar[Verbosity]
THINKING_LEVEL_UNSPECIFIED: ThinkingLevel
THINKING_LEVEL_OFF: ThinkingLevel
THINKING_LEVEL_MINIMAL: ThinkingLevel
THINKING_LEVEL_LOW: ThinkingLevel
THINKING_LEVEL_MEDIUM: ThinkingLevel
THINKING_LEVEL_HIGH: ThinkingLevel
THINKING_LEVEL_XHIGH: ThinkingLevel
THINKING_LEVEL_MAX: ThinkingLevel
THINKING_LEVEL_ADAPTIVE: ThinkingLevel
THINKING_LEVEL_ULTRA: ThinkingLevel
PRIORITY_UNSPECIFIED: Priority
PRIORITY_BACKGROUND: Priority
PRIORITY_NORMAL: Priority
PRIORITY_FOREGROUND: Priority
QUEUE_MODE_UNSPECIFIED: QueueMode
QUEUE_MODE_STEER: QueueMode
QUEUE_MODE_FOLLOWUP: QueueMode
QUEUE_MODE_COLLECT: QueueMode
QUEUE_MODE_INTERRUPT: QueueMode
PROMPT_MODE_UNSPECIFIED: PromptMode
PROMPT_MODE_FULL: PromptMode
PROMPT_MODE_MINIMAL: PromptMode
PROMPT_MODE_NONE: PromptMode
BOOTSTRAP_CONTEXT_MODE_UNSPECIFIED: BootstrapContextMode
BOOTSTRAP_CONTEXT_MODE_FULL: BootstrapContextMode
BOOTSTRAP_CONTEXT_MODE_LIGHTWEIGHT: BootstrapContextMode
PROVENANCE_KIND_UNSPECIFIED: ProvenanceKind
PROVENANCE_KIND_EXTERNAL_USER: ProvenanceKind
PROVENANCE_KIND_INTER_SESSION: ProvenanceKind
PROVENANCE_KIND_INTERNAL_SYSTEM: ProvenanceKind
WAIT_STATUS_UNSPECIFIED: WaitStatus
WAIT_STATUS_OK: WaitStatus
WAIT_STATUS_ERROR: WaitStatus
WAIT_STATUS_TIMEOUT: WaitStatus
TIMEOUT_KIND_UNSPECIFIED: TimeoutKind
TIMEOUT_KIND_WAIT_EXPIRED: TimeoutKind
TIMEOUT_KIND_RUN_DEADLINE: TimeoutKind
TIMEOUT_KIND_CANCELLED: TimeoutKind
TIMEOUT_KIND_DRAINING: TimeoutKind
LIVENESS_UNSPECIFIED: Liveness
LIVENESS_WORKING: Liveness
LIVENESS_PAUSED: Liveness
LIVENESS_BLOCKED: Liveness
LIVENESS_ABANDONED: Liveness
VIEW_UNSPECIFIED: View
VIEW_AGENT: View
VIEW_CHAT: View
VERBOSITY_UNSPECIFIED: Verbosity
VERBOSITY_OFF: Verbosity
VERBOSITY_ON: Verbosity
VERBOSITY_FULL: Verbosity

class Provenance(_message.Message):
    __slots__ = ("kind", "source_session_key", "source_channel", "source_tool")
    KIND_FIELD_NUMBER: _ClassVar[int]
    SOURCE_SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    SOURCE_CHANNEL_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOOL_FIELD_NUMBER: _ClassVar[int]
    kind: ProvenanceKind
    source_session_key: str
    source_channel: str
    source_tool: str
    def __init__(self, kind: _Optional[_Union[ProvenanceKind, str]] = ..., source_session_key: _Optional[str] = ..., source_channel: _Optional[str] = ..., source_tool: _Optional[str] = ...) -> None: ...

class Attachment(_message.Message):
    __slots__ = ("name", "mime_type", "data", "uri")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    name: str
    mime_type: str
    data: bytes
    uri: str
    def __init__(self, name: _Optional[str] = ..., mime_type: _Optional[str] = ..., data: _Optional[bytes] = ..., uri: _Optional[str] = ...) -> None: ...

class AgentRequest(_message.Message):
    __slots__ = ("message", "attachments", "agent_id", "session_key", "session_id", "idempotency_key", "model", "thinking", "timeout", "lane", "priority", "queue_mode", "channel", "to", "account_id", "thread_id", "deliver", "best_effort_deliver", "extra_system_prompt", "prompt_mode", "bootstrap_context_mode", "label", "provenance", "tools_allow", "tools_deny", "response_schema", "max_turns", "max_output_tokens", "temperature", "seed", "parent_run_id", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ATTACHMENTS_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    THINKING_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_MODE_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    DELIVER_FIELD_NUMBER: _ClassVar[int]
    BEST_EFFORT_DELIVER_FIELD_NUMBER: _ClassVar[int]
    EXTRA_SYSTEM_PROMPT_FIELD_NUMBER: _ClassVar[int]
    PROMPT_MODE_FIELD_NUMBER: _ClassVar[int]
    BOOTSTRAP_CONTEXT_MODE_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    TOOLS_ALLOW_FIELD_NUMBER: _ClassVar[int]
    TOOLS_DENY_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    MAX_TURNS_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    message: str
    attachments: _containers.RepeatedCompositeFieldContainer[Attachment]
    agent_id: str
    session_key: str
    session_id: str
    idempotency_key: str
    model: str
    thinking: ThinkingLevel
    timeout: _duration_pb2.Duration
    lane: str
    priority: Priority
    queue_mode: QueueMode
    channel: str
    to: str
    account_id: str
    thread_id: str
    deliver: bool
    best_effort_deliver: bool
    extra_system_prompt: str
    prompt_mode: PromptMode
    bootstrap_context_mode: BootstrapContextMode
    label: str
    provenance: Provenance
    tools_allow: _containers.RepeatedScalarFieldContainer[str]
    tools_deny: _containers.RepeatedScalarFieldContainer[str]
    response_schema: _struct_pb2.Struct
    max_turns: int
    max_output_tokens: int
    temperature: float
    seed: int
    parent_run_id: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, message: _Optional[str] = ..., attachments: _Optional[_Iterable[_Union[Attachment, _Mapping]]] = ..., agent_id: _Optional[str] = ..., session_key: _Optional[str] = ..., session_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., model: _Optional[str] = ..., thinking: _Optional[_Union[ThinkingLevel, str]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., lane: _Optional[str] = ..., priority: _Optional[_Union[Priority, str]] = ..., queue_mode: _Optional[_Union[QueueMode, str]] = ..., channel: _Optional[str] = ..., to: _Optional[str] = ..., account_id: _Optional[str] = ..., thread_id: _Optional[str] = ..., deliver: _Optional[bool] = ..., best_effort_deliver: _Optional[bool] = ..., extra_system_prompt: _Optional[str] = ..., prompt_mode: _Optional[_Union[PromptMode, str]] = ..., bootstrap_context_mode: _Optional[_Union[BootstrapContextMode, str]] = ..., label: _Optional[str] = ..., provenance: _Optional[_Union[Provenance, _Mapping]] = ..., tools_allow: _Optional[_Iterable[str]] = ..., tools_deny: _Optional[_Iterable[str]] = ..., response_schema: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., max_turns: _Optional[int] = ..., max_output_tokens: _Optional[int] = ..., temperature: _Optional[float] = ..., seed: _Optional[int] = ..., parent_run_id: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class WaitRequest(_message.Message):
    __slots__ = ("run_id", "timeout")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    timeout: _duration_pb2.Duration
    def __init__(self, run_id: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WaitResponse(_message.Message):
    __slots__ = ("run_id", "status", "timeout_kind", "state", "accepted_at", "started_at", "ended_at", "error", "error_pending", "stop_reason", "truncated", "payloads", "output", "usage", "merged_into_run_id", "liveness")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ERROR_PENDING_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    MERGED_INTO_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LIVENESS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    status: WaitStatus
    timeout_kind: TimeoutKind
    state: _run_pb2.RunState
    accepted_at: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    error: _run_pb2.RunError
    error_pending: bool
    stop_reason: str
    truncated: bool
    payloads: _containers.RepeatedCompositeFieldContainer[_run_pb2.Payload]
    output: _struct_pb2.Struct
    usage: _run_pb2.Usage
    merged_into_run_id: str
    liveness: Liveness
    def __init__(self, run_id: _Optional[str] = ..., status: _Optional[_Union[WaitStatus, str]] = ..., timeout_kind: _Optional[_Union[TimeoutKind, str]] = ..., state: _Optional[_Union[_run_pb2.RunState, str]] = ..., accepted_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., error: _Optional[_Union[_run_pb2.RunError, _Mapping]] = ..., error_pending: _Optional[bool] = ..., stop_reason: _Optional[str] = ..., truncated: _Optional[bool] = ..., payloads: _Optional[_Iterable[_Union[_run_pb2.Payload, _Mapping]]] = ..., output: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., usage: _Optional[_Union[_run_pb2.Usage, _Mapping]] = ..., merged_into_run_id: _Optional[str] = ..., liveness: _Optional[_Union[Liveness, str]] = ...) -> None: ...

class SubscribeRequest(_message.Message):
    __slots__ = ("run_id", "session_key", "all", "after_seq", "cursor", "streams", "view", "verbose")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQ_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    VERBOSE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    session_key: str
    all: bool
    after_seq: int
    cursor: str
    streams: _containers.RepeatedScalarFieldContainer[_event_pb2.StreamKind]
    view: View
    verbose: Verbosity
    def __init__(self, run_id: _Optional[str] = ..., session_key: _Optional[str] = ..., all: _Optional[bool] = ..., after_seq: _Optional[int] = ..., cursor: _Optional[str] = ..., streams: _Optional[_Iterable[_Union[_event_pb2.StreamKind, str]]] = ..., view: _Optional[_Union[View, str]] = ..., verbose: _Optional[_Union[Verbosity, str]] = ...) -> None: ...

class AbortRequest(_message.Message):
    __slots__ = ("run_id", "session_key", "clear_queued", "reason")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    CLEAR_QUEUED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    session_key: str
    clear_queued: bool
    reason: str
    def __init__(self, run_id: _Optional[str] = ..., session_key: _Optional[str] = ..., clear_queued: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class AbortResponse(_message.Message):
    __slots__ = ("aborted_run_ids", "cancelled_run_ids", "pending_run_ids")
    ABORTED_RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    PENDING_RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    aborted_run_ids: _containers.RepeatedScalarFieldContainer[str]
    cancelled_run_ids: _containers.RepeatedScalarFieldContainer[str]
    pending_run_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, aborted_run_ids: _Optional[_Iterable[str]] = ..., cancelled_run_ids: _Optional[_Iterable[str]] = ..., pending_run_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class GetRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class ListRunsRequest(_message.Message):
    __slots__ = ("session_key", "states", "agent_id", "label", "page_size", "page_token")
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    session_key: str
    states: _containers.RepeatedScalarFieldContainer[_run_pb2.RunState]
    agent_id: str
    label: str
    page_size: int
    page_token: str
    def __init__(self, session_key: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_run_pb2.RunState, str]]] = ..., agent_id: _Optional[str] = ..., label: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRunsResponse(_message.Message):
    __slots__ = ("runs", "next_page_token")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[_run_pb2.Run]
    next_page_token: str
    def __init__(self, runs: _Optional[_Iterable[_Union[_run_pb2.Run, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListAgentsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAgentsResponse(_message.Message):
    __slots__ = ("agents", "next_page_token")
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[Agent]
    next_page_token: str
    def __init__(self, agents: _Optional[_Iterable[_Union[Agent, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Agent(_message.Message):
    __slots__ = ("agent_id", "model", "tools")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    model: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agent_id: _Optional[str] = ..., model: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models", "next_page_token")
    MODELS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[Model]
    next_page_token: str
    def __init__(self, models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("model", "api", "context_window", "available")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    API_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_WINDOW_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    model: str
    api: str
    context_window: int
    available: bool
    def __init__(self, model: _Optional[str] = ..., api: _Optional[str] = ..., context_window: _Optional[int] = ..., available: _Optional[bool] = ...) -> None: ...

class ListToolsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListToolsResponse(_message.Message):
    __slots__ = ("tools", "next_page_token")
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tools: _containers.RepeatedCompositeFieldContainer[Tool]
    next_page_token: str
    def __init__(self, tools: _Optional[_Iterable[_Union[Tool, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Tool(_message.Message):
    __slots__ = ("name", "description", "schema", "source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    schema: _struct_pb2.Struct
    source: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., schema: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., source: _Optional[str] = ...) -> None: ...
