import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from laneway.v1 import agent_pb2 as _agent_pb2
from laneway.v1 import event_pb2 as _event_pb2
from laneway.v1 import run_pb2 as _run_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReasoningVisibility(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASONING_VISIBILITY_UNSPECIFIED: _ClassVar[ReasoningVisibility]
    REASONING_VISIBILITY_OFF: _ClassVar[ReasoningVisibility]
    REASONING_VISIBILITY_ON: _ClassVar[ReasoningVisibility]
    REASONING_VISIBILITY_STREAM: _ClassVar[ReasoningVisibility]

class QueueDrop(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUEUE_DROP_UNSPECIFIED: _ClassVar[QueueDrop]
    QUEUE_DROP_OLD: _ClassVar[QueueDrop]
    QUEUE_DROP_NEW: _ClassVar[QueueDrop]
    QUEUE_DROP_SUMMARIZE: _ClassVar[QueueDrop]
REASONING_VISIBILITY_UNSPECIFIED: ReasoningVisibility
REASONING_VISIBILITY_OFF: ReasoningVisibility
REASONING_VISIBILITY_ON: ReasoningVisibility
REASONING_VISIBILITY_STREAM: ReasoningVisibility
QUEUE_DROP_UNSPECIFIED: QueueDrop
QUEUE_DROP_OLD: QueueDrop
QUEUE_DROP_NEW: QueueDrop
QUEUE_DROP_SUMMARIZE: QueueDrop

class Session(_message.Message):
    __slots__ = ("session_key", "session_id", "agent_id", "label", "created_at", "last_interaction_at", "active_run_id", "queued_runs", "last_run_id", "last_state", "model", "thinking", "verbose", "reasoning", "trace", "queue_mode", "usage", "context_tokens", "compactions", "pinned", "archived", "parent_session_key", "queue_debounce", "queue_cap", "queue_drop")
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_INTERACTION_AT_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUED_RUNS_FIELD_NUMBER: _ClassVar[int]
    LAST_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_STATE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    THINKING_FIELD_NUMBER: _ClassVar[int]
    VERBOSE_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_MODE_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPACTIONS_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    PARENT_SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_DEBOUNCE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_CAP_FIELD_NUMBER: _ClassVar[int]
    QUEUE_DROP_FIELD_NUMBER: _ClassVar[int]
    session_key: str
    session_id: str
    agent_id: str
    label: str
    created_at: _timestamp_pb2.Timestamp
    last_interaction_at: _timestamp_pb2.Timestamp
    active_run_id: str
    queued_runs: int
    last_run_id: str
    last_state: _run_pb2.RunState
    model: str
    thinking: _agent_pb2.ThinkingLevel
    verbose: _agent_pb2.Verbosity
    reasoning: ReasoningVisibility
    trace: bool
    queue_mode: _agent_pb2.QueueMode
    usage: _run_pb2.Usage
    context_tokens: int
    compactions: int
    pinned: bool
    archived: bool
    parent_session_key: str
    queue_debounce: _duration_pb2.Duration
    queue_cap: int
    queue_drop: QueueDrop
    def __init__(self, session_key: _Optional[str] = ..., session_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., label: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_interaction_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., active_run_id: _Optional[str] = ..., queued_runs: _Optional[int] = ..., last_run_id: _Optional[str] = ..., last_state: _Optional[_Union[_run_pb2.RunState, str]] = ..., model: _Optional[str] = ..., thinking: _Optional[_Union[_agent_pb2.ThinkingLevel, str]] = ..., verbose: _Optional[_Union[_agent_pb2.Verbosity, str]] = ..., reasoning: _Optional[_Union[ReasoningVisibility, str]] = ..., trace: _Optional[bool] = ..., queue_mode: _Optional[_Union[_agent_pb2.QueueMode, str]] = ..., usage: _Optional[_Union[_run_pb2.Usage, _Mapping]] = ..., context_tokens: _Optional[int] = ..., compactions: _Optional[int] = ..., pinned: _Optional[bool] = ..., archived: _Optional[bool] = ..., parent_session_key: _Optional[str] = ..., queue_debounce: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., queue_cap: _Optional[int] = ..., queue_drop: _Optional[_Union[QueueDrop, str]] = ...) -> None: ...

class GetSessionRequest(_message.Message):
    __slots__ = ("session_key",)
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    session_key: str
    def __init__(self, session_key: _Optional[str] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "archived", "pinned")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    archived: bool
    pinned: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., archived: _Optional[bool] = ..., pinned: _Optional[bool] = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ("sessions", "next_page_token")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[Session]
    next_page_token: str
    def __init__(self, sessions: _Optional[_Iterable[_Union[Session, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateSessionRequest(_message.Message):
    __slots__ = ("session", "update_mask")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    session: Session
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class ResetSessionRequest(_message.Message):
    __slots__ = ("session_key", "force")
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    session_key: str
    force: bool
    def __init__(self, session_key: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class ResetSessionResponse(_message.Message):
    __slots__ = ("aborted_run_ids",)
    ABORTED_RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    aborted_run_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, aborted_run_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class DeleteSessionRequest(_message.Message):
    __slots__ = ("session_key", "force")
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    session_key: str
    force: bool
    def __init__(self, session_key: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class DeleteSessionResponse(_message.Message):
    __slots__ = ("aborted_run_ids",)
    ABORTED_RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    aborted_run_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, aborted_run_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ForkSessionRequest(_message.Message):
    __slots__ = ("session_key", "entry_id", "new_session_key", "label")
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    NEW_SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    session_key: str
    entry_id: str
    new_session_key: str
    label: str
    def __init__(self, session_key: _Optional[str] = ..., entry_id: _Optional[str] = ..., new_session_key: _Optional[str] = ..., label: _Optional[str] = ...) -> None: ...

class ForkSessionResponse(_message.Message):
    __slots__ = ("session", "entries", "duplicate")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    session: Session
    entries: int
    duplicate: bool
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ..., entries: _Optional[int] = ..., duplicate: _Optional[bool] = ...) -> None: ...

class Entry(_message.Message):
    __slots__ = ("entry_id", "parent_entry_id", "time", "run_id", "user", "assistant", "tool_result", "compaction", "reset", "custom", "truncated", "total_bytes")
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    ASSISTANT_FIELD_NUMBER: _ClassVar[int]
    TOOL_RESULT_FIELD_NUMBER: _ClassVar[int]
    COMPACTION_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    entry_id: str
    parent_entry_id: str
    time: _timestamp_pb2.Timestamp
    run_id: str
    user: UserEntry
    assistant: AssistantEntry
    tool_result: ToolResultEntry
    compaction: CompactionEntry
    reset: ResetEntry
    custom: CustomEntry
    truncated: bool
    total_bytes: int
    def __init__(self, entry_id: _Optional[str] = ..., parent_entry_id: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., run_id: _Optional[str] = ..., user: _Optional[_Union[UserEntry, _Mapping]] = ..., assistant: _Optional[_Union[AssistantEntry, _Mapping]] = ..., tool_result: _Optional[_Union[ToolResultEntry, _Mapping]] = ..., compaction: _Optional[_Union[CompactionEntry, _Mapping]] = ..., reset: _Optional[_Union[ResetEntry, _Mapping]] = ..., custom: _Optional[_Union[CustomEntry, _Mapping]] = ..., truncated: _Optional[bool] = ..., total_bytes: _Optional[int] = ...) -> None: ...

class AttachmentReference(_message.Message):
    __slots__ = ("name", "mime_type", "hash", "size")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    name: str
    mime_type: str
    hash: str
    size: int
    def __init__(self, name: _Optional[str] = ..., mime_type: _Optional[str] = ..., hash: _Optional[str] = ..., size: _Optional[int] = ...) -> None: ...

class ContentBlock(_message.Message):
    __slots__ = ("text", "attachment")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ATTACHMENT_FIELD_NUMBER: _ClassVar[int]
    text: str
    attachment: AttachmentReference
    def __init__(self, text: _Optional[str] = ..., attachment: _Optional[_Union[AttachmentReference, _Mapping]] = ...) -> None: ...

class ToolCall(_message.Message):
    __slots__ = ("call_id", "name", "arguments_json")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    name: str
    arguments_json: str
    def __init__(self, call_id: _Optional[str] = ..., name: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class AssistantBlock(_message.Message):
    __slots__ = ("text", "reasoning", "tool_call")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_FIELD_NUMBER: _ClassVar[int]
    text: str
    reasoning: str
    tool_call: ToolCall
    def __init__(self, text: _Optional[str] = ..., reasoning: _Optional[str] = ..., tool_call: _Optional[_Union[ToolCall, _Mapping]] = ...) -> None: ...

class UserEntry(_message.Message):
    __slots__ = ("content",)
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    content: _containers.RepeatedCompositeFieldContainer[ContentBlock]
    def __init__(self, content: _Optional[_Iterable[_Union[ContentBlock, _Mapping]]] = ...) -> None: ...

class AssistantEntry(_message.Message):
    __slots__ = ("message_id", "content", "provider", "model", "usage", "stop_reason", "response_model")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_MODEL_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    content: _containers.RepeatedCompositeFieldContainer[AssistantBlock]
    provider: str
    model: str
    usage: _run_pb2.Usage
    stop_reason: str
    response_model: str
    def __init__(self, message_id: _Optional[str] = ..., content: _Optional[_Iterable[_Union[AssistantBlock, _Mapping]]] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ..., usage: _Optional[_Union[_run_pb2.Usage, _Mapping]] = ..., stop_reason: _Optional[str] = ..., response_model: _Optional[str] = ...) -> None: ...

class ToolResultEntry(_message.Message):
    __slots__ = ("call_id", "name", "content", "is_error", "outcome")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    name: str
    content: _containers.RepeatedCompositeFieldContainer[ContentBlock]
    is_error: bool
    outcome: _event_pb2.ToolOutcome
    def __init__(self, call_id: _Optional[str] = ..., name: _Optional[str] = ..., content: _Optional[_Iterable[_Union[ContentBlock, _Mapping]]] = ..., is_error: _Optional[bool] = ..., outcome: _Optional[_Union[_event_pb2.ToolOutcome, str]] = ...) -> None: ...

class CompactionEntry(_message.Message):
    __slots__ = ("summary", "first_kept_entry_id", "tokens_before")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    FIRST_KEPT_ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    TOKENS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    summary: str
    first_kept_entry_id: str
    tokens_before: int
    def __init__(self, summary: _Optional[str] = ..., first_kept_entry_id: _Optional[str] = ..., tokens_before: _Optional[int] = ...) -> None: ...

class ResetEntry(_message.Message):
    __slots__ = ("first_kept_entry_id",)
    FIRST_KEPT_ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    first_kept_entry_id: str
    def __init__(self, first_kept_entry_id: _Optional[str] = ...) -> None: ...

class CustomEntry(_message.Message):
    __slots__ = ("type", "data")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    type: str
    data: _struct_pb2.Struct
    def __init__(self, type: _Optional[str] = ..., data: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class ListEntriesRequest(_message.Message):
    __slots__ = ("session_key", "page_size", "page_token")
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    session_key: str
    page_size: int
    page_token: str
    def __init__(self, session_key: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEntriesResponse(_message.Message):
    __slots__ = ("entries", "next_page_token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[Entry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[Entry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ReadEntryRequest(_message.Message):
    __slots__ = ("session_key", "entry_id", "part", "offset")
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    session_key: str
    entry_id: str
    part: int
    offset: int
    def __init__(self, session_key: _Optional[str] = ..., entry_id: _Optional[str] = ..., part: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class ReadEntryResponse(_message.Message):
    __slots__ = ("text", "next_offset", "total_bytes")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    text: str
    next_offset: int
    total_bytes: int
    def __init__(self, text: _Optional[str] = ..., next_offset: _Optional[int] = ..., total_bytes: _Optional[int] = ...) -> None: ...

class ExportSessionRequest(_message.Message):
    __slots__ = ("session_key",)
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    session_key: str
    def __init__(self, session_key: _Optional[str] = ...) -> None: ...

class ExportSessionResponse(_message.Message):
    __slots__ = ("line", "line_continues")
    LINE_FIELD_NUMBER: _ClassVar[int]
    LINE_CONTINUES_FIELD_NUMBER: _ClassVar[int]
    line: str
    line_continues: bool
    def __init__(self, line: _Optional[str] = ..., line_continues: _Optional[bool] = ...) -> None: ...

class ImportSessionRequest(_message.Message):
    __slots__ = ("session_key", "line", "line_continues")
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    LINE_CONTINUES_FIELD_NUMBER: _ClassVar[int]
    session_key: str
    line: str
    line_continues: bool
    def __init__(self, session_key: _Optional[str] = ..., line: _Optional[str] = ..., line_continues: _Optional[bool] = ...) -> None: ...

class ImportSessionResponse(_message.Message):
    __slots__ = ("session", "entries")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    session: Session
    entries: int
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ..., entries: _Optional[int] = ...) -> None: ...
