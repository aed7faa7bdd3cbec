import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_STATE_UNSPECIFIED: _ClassVar[RunState]
    RUN_STATE_QUEUED: _ClassVar[RunState]
    RUN_STATE_RUNNING: _ClassVar[RunState]
    RUN_STATE_MERGED: _ClassVar[RunState]
    RUN_STATE_SUCCEEDED: _ClassVar[RunState]
    RUN_STATE_FAILED: _ClassVar[RunState]
    RUN_STATE_CANCELLED: _ClassVar[RunState]
    RUN_STATE_TIMED_OUT: _ClassVar[RunState]

class Disposition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DISPOSITION_UNSPECIFIED: _ClassVar[Disposition]
    DISPOSITION_STARTED: _ClassVar[Disposition]
    DISPOSITION_QUEUED: _ClassVar[Disposition]
    DISPOSITION_STEERED: _ClassVar[Disposition]
    DISPOSITION_COLLECTED: _ClassVar[Disposition]
    DISPOSITION_INTERRUPTED_PREVIOUS: _ClassVar[Disposition]
    DISPOSITION_COMPLETED: _ClassVar[Disposition]
RUN_STATE_UNSPECIFIED: RunState
RUN_STATE_QUEUED: RunState
RUN_STATE_RUNNING: RunState
RUN_STATE_MERGED: RunState
RUN_STATE_SUCCEEDED: RunState
RUN_STATE_FAILED: RunState
RUN_STATE_CANCELLED: RunState
RUN_STATE_TIMED_OUT: RunState
DISPOSITION_UNSPECIFIED: Disposition
DISPOSITION_STARTED: Disposition
DISPOSITION_QUEUED: Disposition
DISPOSITION_STEERED: Disposition
DISPOSITION_COLLECTED: Disposition
DISPOSITION_INTERRUPTED_PREVIOUS: Disposition
DISPOSITION_COMPLETED: Disposition

class AgentResponse(_message.Message):
    __slots__ = ("run_id", "accepted_at", "session_key", "session_id", "agent_id", "duplicate", "disposition", "queue_position", "merged_into_run_id", "reply")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_AT_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    DISPOSITION_FIELD_NUMBER: _ClassVar[int]
    QUEUE_POSITION_FIELD_NUMBER: _ClassVar[int]
    MERGED_INTO_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    accepted_at: _timestamp_pb2.Timestamp
    session_key: str
    session_id: str
    agent_id: str
    duplicate: bool
    disposition: Disposition
    queue_position: int
    merged_into_run_id: str
    reply: str
    def __init__(self, run_id: _Optional[str] = ..., accepted_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., session_key: _Optional[str] = ..., session_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., duplicate: _Optional[bool] = ..., disposition: _Optional[_Union[Disposition, str]] = ..., queue_position: _Optional[int] = ..., merged_into_run_id: _Optional[str] = ..., reply: _Optional[str] = ...) -> None: ...

class RunError(_message.Message):
    __slots__ = ("reason", "message", "provider", "model", "http_status", "retryable", "tool_name")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    HTTP_STATUS_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    provider: str
    model: str
    http_status: int
    retryable: bool
    tool_name: str
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ..., http_status: _Optional[int] = ..., retryable: _Optional[bool] = ..., tool_name: _Optional[str] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "total_tokens", "cost_usd", "unavailable")
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_READ_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    total_tokens: int
    cost_usd: float
    unavailable: bool
    def __init__(self, input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cache_read_tokens: _Optional[int] = ..., cache_write_tokens: _Optional[int] = ..., reasoning_tokens: _Optional[int] = ..., total_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., unavailable: _Optional[bool] = ...) -> None: ...

class Media(_message.Message):
    __slots__ = ("uri", "mime_type")
    URI_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    uri: str
    mime_type: str
    def __init__(self, uri: _Optional[str] = ..., mime_type: _Optional[str] = ...) -> None: ...

class Payload(_message.Message):
    __slots__ = ("text", "truncated", "total_bytes", "media", "is_error", "is_reasoning")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEDIA_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    IS_REASONING_FIELD_NUMBER: _ClassVar[int]
    text: str
    truncated: bool
    total_bytes: int
    media: _containers.RepeatedCompositeFieldContainer[Media]
    is_error: bool
    is_reasoning: bool
    def __init__(self, text: _Optional[str] = ..., truncated: _Optional[bool] = ..., total_bytes: _Optional[int] = ..., media: _Optional[_Iterable[_Union[Media, _Mapping]]] = ..., is_error: _Optional[bool] = ..., is_reasoning: _Optional[bool] = ...) -> None: ...

class Run(_message.Message):
    __slots__ = ("run_id", "session_key", "session_id", "agent_id", "parent_run_id", "label", "state", "disposition", "queue_position", "accepted_at", "started_at", "ended_at", "error", "stop_reason", "truncated", "payloads", "output", "usage", "merged_into_run_id", "model", "attempt", "last_seq", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DISPOSITION_FIELD_NUMBER: _ClassVar[int]
    QUEUE_POSITION_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    MERGED_INTO_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    session_key: str
    session_id: str
    agent_id: str
    parent_run_id: str
    label: str
    state: RunState
    disposition: Disposition
    queue_position: int
    accepted_at: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    error: RunError
    stop_reason: str
    truncated: bool
    payloads: _containers.RepeatedCompositeFieldContainer[Payload]
    output: _struct_pb2.Struct
    usage: Usage
    merged_into_run_id: str
    model: str
    attempt: int
    last_seq: int
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, run_id: _Optional[str] = ..., session_key: _Optional[str] = ..., session_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., parent_run_id: _Optional[str] = ..., label: _Optional[str] = ..., state: _Optional[_Union[RunState, str]] = ..., disposition: _Optional[_Union[Disposition, str]] = ..., queue_position: _Optional[int] = ..., accepted_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., error: _Optional[_Union[RunError, _Mapping]] = ..., stop_reason: _Optional[str] = ..., truncated: _Optional[bool] = ..., payloads: _Optional[_Iterable[_Union[Payload, _Mapping]]] = ..., output: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., merged_into_run_id: _Optional[str] = ..., model: _Optional[str] = ..., attempt: _Optional[int] = ..., last_seq: _Optional[int] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...
