import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from laneway.v1 import approval_types_pb2 as _approval_types_pb2
from laneway.v1 import run_pb2 as _run_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StreamKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STREAM_KIND_UNSPECIFIED: _ClassVar[StreamKind]
    STREAM_KIND_ACCEPTED: _ClassVar[StreamKind]
    STREAM_KIND_SNAPSHOT: _ClassVar[StreamKind]
    STREAM_KIND_PROGRESS: _ClassVar[StreamKind]
    STREAM_KIND_LIFECYCLE: _ClassVar[StreamKind]
    STREAM_KIND_ASSISTANT: _ClassVar[StreamKind]
    STREAM_KIND_REASONING: _ClassVar[StreamKind]
    STREAM_KIND_MESSAGE: _ClassVar[StreamKind]
    STREAM_KIND_TOOL: _ClassVar[StreamKind]
    STREAM_KIND_ITEM: _ClassVar[StreamKind]
    STREAM_KIND_COMMAND_OUTPUT: _ClassVar[StreamKind]
    STREAM_KIND_PATCH: _ClassVar[StreamKind]
    STREAM_KIND_PLAN: _ClassVar[StreamKind]
    STREAM_KIND_APPROVAL: _ClassVar[StreamKind]
    STREAM_KIND_COMPACTION: _ClassVar[StreamKind]
    STREAM_KIND_QUEUE: _ClassVar[StreamKind]
    STREAM_KIND_CHAT: _ClassVar[StreamKind]
    STREAM_KIND_DIAGNOSTIC: _ClassVar[StreamKind]
    STREAM_KIND_DELIVERY: _ClassVar[StreamKind]

class LifecyclePhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LIFECYCLE_PHASE_UNSPECIFIED: _ClassVar[LifecyclePhase]
    LIFECYCLE_PHASE_START: _ClassVar[LifecyclePhase]
    LIFECYCLE_PHASE_FINISHING: _ClassVar[LifecyclePhase]
    LIFECYCLE_PHASE_RETRY: _ClassVar[LifecyclePhase]
    LIFECYCLE_PHASE_FALLBACK: _ClassVar[LifecyclePhase]
    LIFECYCLE_PHASE_FALLBACK_CLEARED: _ClassVar[LifecyclePhase]
    LIFECYCLE_PHASE_RECOVERED: _ClassVar[LifecyclePhase]
    LIFECYCLE_PHASE_END: _ClassVar[LifecyclePhase]
    LIFECYCLE_PHASE_ERROR: _ClassVar[LifecyclePhase]

class ToolPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOOL_PHASE_UNSPECIFIED: _ClassVar[ToolPhase]
    TOOL_PHASE_START: _ClassVar[ToolPhase]
    TOOL_PHASE_UPDATE: _ClassVar[ToolPhase]
    TOOL_PHASE_RESULT: _ClassVar[ToolPhase]

class ToolOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOOL_OUTCOME_UNSPECIFIED: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_OK: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_ERROR: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_BLOCKED: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_SKIPPED: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_ABORTED: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_UNKNOWN: _ClassVar[ToolOutcome]

class QueuePhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUEUE_PHASE_UNSPECIFIED: _ClassVar[QueuePhase]
    QUEUE_PHASE_QUEUED: _ClassVar[QueuePhase]
    QUEUE_PHASE_STARTED: _ClassVar[QueuePhase]
    QUEUE_PHASE_STEERED: _ClassVar[QueuePhase]
    QUEUE_PHASE_INJECTED: _ClassVar[QueuePhase]
    QUEUE_PHASE_COLLECTED: _ClassVar[QueuePhase]
    QUEUE_PHASE_DETACHED: _ClassVar[QueuePhase]
    QUEUE_PHASE_DROPPED: _ClassVar[QueuePhase]
    QUEUE_PHASE_CANCELLED: _ClassVar[QueuePhase]

class ApprovalPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    APPROVAL_PHASE_UNSPECIFIED: _ClassVar[ApprovalPhase]
    APPROVAL_PHASE_REQUESTED: _ClassVar[ApprovalPhase]
    APPROVAL_PHASE_RESOLVED: _ClassVar[ApprovalPhase]

class CompactionPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPACTION_PHASE_UNSPECIFIED: _ClassVar[CompactionPhase]
    COMPACTION_PHASE_START: _ClassVar[CompactionPhase]
    COMPACTION_PHASE_END: _ClassVar[CompactionPhase]

class CompactionOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPACTION_OUTCOME_UNSPECIFIED: _ClassVar[CompactionOutcome]
    COMPACTION_OUTCOME_COMPLETED: _ClassVar[CompactionOutcome]
    COMPACTION_OUTCOME_SKIPPED: _ClassVar[CompactionOutcome]
    COMPACTION_OUTCOME_FAILED: _ClassVar[CompactionOutcome]
    COMPACTION_OUTCOME_ABORTED: _ClassVar[CompactionOutcome]

class CompactionTrigger(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPACTION_TRIGGER_UNSPECIFIED: _ClassVar[CompactionTrigger]
    COMPACTION_TRIGGER_MANUAL: _ClassVar[CompactionTrigger]
    COMPACTION_TRIGGER_THRESHOLD: _ClassVar[CompactionTrigger]
    COMPACTION_TRIGGER_OVERFLOW: _ClassVar[CompactionTrigger]
STREAM_KIND_UNSPECIFIED: StreamKind
STREAM_KIND_ACCEPTED: StreamKind
STREAM_KIND_SNAPSHOT: StreamKind
STREAM_KIND_PROGRESS: StreamKind
STREAM_KIND_LIFECYCLE: StreamKind
STREAM_KIND_ASSISTANT: StreamKind
STREAM_KIND_REASONING: StreamKind
STREAM_KIND_MESSAGE: StreamKind
STREAM_KIND_TOOL: StreamKind
STREAM_KIND_ITEM: StreamKind
STREAM_KIND_COMMAND_OUTPUT: StreamKind
STREAM_KIND_PATCH: StreamKind
STREAM_KIND_PLAN: StreamKind
STREAM_KIND_APPROVAL: StreamKind
STREAM_KIND_COMPACTION: StreamKind
STREAM_KIND_QUEUE: StreamKind
STREAM_KIND_CHAT: StreamKind
STREAM_KIND_DIAGNOSTIC: StreamKind
STREAM_KIND_DELIVERY: StreamKind
LIFECYCLE_PHASE_UNSPECIFIED: LifecyclePhase
LIFECYCLE_PHASE_START: LifecyclePhase
LIFECYCLE_PHASE_FINISHING: LifecyclePhase
LIFECYCLE_PHASE_RETRY: LifecyclePhase
LIFECYCLE_PHASE_FALLBACK: LifecyclePhase
LIFECYCLE_PHASE_FALLBACK_CLEARED: LifecyclePhase
LIFECYCLE_PHASE_RECOVERED: LifecyclePhase
LIFECYCLE_PHASE_END: LifecyclePhase
LIFECYCLE_PHASE_ERROR: LifecyclePhase
TOOL_PHASE_UNSPECIFIED: ToolPhase
TOOL_PHASE_START: ToolPhase
TOOL_PHASE_UPDATE: ToolPhase
TOOL_PHASE_RESULT: ToolPhase
TOOL_OUTCOME_UNSPECIFIED: ToolOutcome
TOOL_OUTCOME_OK: ToolOutcome
TOOL_OUTCOME_ERROR: ToolOutcome
TOOL_OUTCOME_BLOCKED: ToolOutcome
TOOL_OUTCOME_SKIPPED: ToolOutcome
TOOL_OUTCOME_ABORTED: ToolOutcome
TOOL_OUTCOME_UNKNOWN: ToolOutcome
QUEUE_PHASE_UNSPECIFIED: QueuePhase
QUEUE_PHASE_QUEUED: QueuePhase
QUEUE_PHASE_STARTED: QueuePhase
QUEUE_PHASE_STEERED: QueuePhase
QUEUE_PHASE_INJECTED: QueuePhase
QUEUE_PHASE_COLLECTED: QueuePhase
QUEUE_PHASE_DETACHED: QueuePhase
QUEUE_PHASE_DROPPED: QueuePhase
QUEUE_PHASE_CANCELLED: QueuePhase
APPROVAL_PHASE_UNSPECIFIED: ApprovalPhase
APPROVAL_PHASE_REQUESTED: ApprovalPhase
APPROVAL_PHASE_RESOLVED: ApprovalPhase
COMPACTION_PHASE_UNSPECIFIED: CompactionPhase
COMPACTION_PHASE_START: CompactionPhase
COMPACTION_PHASE_END: CompactionPhase
COMPACTION_OUTCOME_UNSPECIFIED: CompactionOutcome
COMPACTION_OUTCOME_COMPLETED: CompactionOutcome
COMPACTION_OUTCOME_SKIPPED: CompactionOutcome
COMPACTION_OUTCOME_FAILED: CompactionOutcome
COMPACTION_OUTCOME_ABORTED: CompactionOutcome
COMPACTION_TRIGGER_UNSPECIFIED: CompactionTrigger
COMPACTION_TRIGGER_MANUAL: CompactionTrigger
COMPACTION_TRIGGER_THRESHOLD: CompactionTrigger
COMPACTION_TRIGGER_OVERFLOW: CompactionTrigger

class Event(_message.Message):
    __slots__ = ("run_id", "seq", "time", "session_key", "agent_id", "cursor", "lifecycle", "assistant", "reasoning", "message", "tool", "queue", "compaction", "approval", "accepted", "snapshot", "progress", "item", "command_output", "patch", "plan", "chat", "diagnostic", "delivery")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIFECYCLE_FIELD_NUMBER: _ClassVar[int]
    ASSISTANT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    COMPACTION_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    COMMAND_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    CHAT_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTIC_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    seq: int
    time: _timestamp_pb2.Timestamp
    session_key: str
    agent_id: str
    cursor: str
    lifecycle: LifecycleEvent
    assistant: AssistantEvent
    reasoning: ReasoningEvent
    message: MessageEvent
    tool: ToolEvent
    queue: QueueEvent
    compaction: CompactionEvent
    approval: ApprovalEvent
    accepted: _run_pb2.AgentResponse
    snapshot: SnapshotEvent
    progress: ProgressEvent
    item: ItemEvent
    command_output: CommandOutputEvent
    patch: PatchEvent
    plan: PlanEvent
    chat: ChatEvent
    diagnostic: DiagnosticEvent
    delivery: DeliveryEvent
    def __init__(self, run_id: _Optional[str] = ..., seq: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., session_key: _Optional[str] = ..., agent_id: _Optional[str] = ..., cursor: _Optional[str] = ..., lifecycle: _Optional[_Union[LifecycleEvent, _Mapping]] = ..., assistant: _Optional[_Union[AssistantEvent, _Mapping]] = ..., reasoning: _Optional[_Union[ReasoningEvent, _Mapping]] = ..., message: _Optional[_Union[MessageEvent, _Mapping]] = ..., tool: _Optional[_Union[ToolEvent, _Mapping]] = ..., queue: _Optional[_Union[QueueEvent, _Mapping]] = ..., compaction: _Optional[_Union[CompactionEvent, _Mapping]] = ..., approval: _Optional[_Union[ApprovalEvent, _Mapping]] = ..., accepted: _Optional[_Union[_run_pb2.AgentResponse, _Mapping]] = ..., snapshot: _Optional[_Union[SnapshotEvent, _Mapping]] = ..., progress: _Optional[_Union[ProgressEvent, _Mapping]] = ..., item: _Optional[_Union[ItemEvent, _Mapping]] = ..., command_output: _Optional[_Union[CommandOutputEvent, _Mapping]] = ..., patch: _Optional[_Union[PatchEvent, _Mapping]] = ..., plan: _Optional[_Union[PlanEvent, _Mapping]] = ..., chat: _Optional[_Union[ChatEvent, _Mapping]] = ..., diagnostic: _Optional[_Union[DiagnosticEvent, _Mapping]] = ..., delivery: _Optional[_Union[DeliveryEvent, _Mapping]] = ...) -> None: ...

class SnapshotEvent(_message.Message):
    __slots__ = ("run", "first_seq", "last_seq")
    RUN_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQ_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    run: _run_pb2.Run
    first_seq: int
    last_seq: int
    def __init__(self, run: _Optional[_Union[_run_pb2.Run, _Mapping]] = ..., first_seq: _Optional[int] = ..., last_seq: _Optional[int] = ...) -> None: ...

class ProgressEvent(_message.Message):
    __slots__ = ("cursor",)
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    cursor: str
    def __init__(self, cursor: _Optional[str] = ...) -> None: ...

class LifecycleEvent(_message.Message):
    __slots__ = ("phase", "state", "cancelled", "stop_reason", "error", "started_at", "ended_at", "usage", "attempt", "delay", "void_message_id", "provider", "model")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    VOID_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    phase: LifecyclePhase
    state: _run_pb2.RunState
    cancelled: bool
    stop_reason: str
    error: _run_pb2.RunError
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    usage: _run_pb2.Usage
    attempt: int
    delay: _duration_pb2.Duration
    void_message_id: str
    provider: str
    model: str
    def __init__(self, phase: _Optional[_Union[LifecyclePhase, str]] = ..., state: _Optional[_Union[_run_pb2.RunState, str]] = ..., cancelled: _Optional[bool] = ..., stop_reason: _Optional[str] = ..., error: _Optional[_Union[_run_pb2.RunError, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., usage: _Optional[_Union[_run_pb2.Usage, _Mapping]] = ..., attempt: _Optional[int] = ..., delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., void_message_id: _Optional[str] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ...) -> None: ...

class AssistantEvent(_message.Message):
    __slots__ = ("message_id", "content_index", "offset", "delta")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_INDEX_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    content_index: int
    offset: int
    delta: str
    def __init__(self, message_id: _Optional[str] = ..., content_index: _Optional[int] = ..., offset: _Optional[int] = ..., delta: _Optional[str] = ...) -> None: ...

class ReasoningEvent(_message.Message):
    __slots__ = ("message_id", "content_index", "offset", "delta")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_INDEX_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    content_index: int
    offset: int
    delta: str
    def __init__(self, message_id: _Optional[str] = ..., content_index: _Optional[int] = ..., offset: _Optional[int] = ..., delta: _Optional[str] = ...) -> None: ...

class MessageEvent(_message.Message):
    __slots__ = ("message_id", "role", "entry_id", "text", "truncated", "total_bytes", "stop_reason", "usage")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    role: str
    entry_id: str
    text: str
    truncated: bool
    total_bytes: int
    stop_reason: str
    usage: _run_pb2.Usage
    def __init__(self, message_id: _Optional[str] = ..., role: _Optional[str] = ..., entry_id: _Optional[str] = ..., text: _Optional[str] = ..., truncated: _Optional[bool] = ..., total_bytes: _Optional[int] = ..., stop_reason: _Optional[str] = ..., usage: _Optional[_Union[_run_pb2.Usage, _Mapping]] = ...) -> None: ...

class ToolEvent(_message.Message):
    __slots__ = ("phase", "call_id", "name", "arguments_json", "result", "is_error", "outcome", "duration")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    phase: ToolPhase
    call_id: str
    name: str
    arguments_json: str
    result: _run_pb2.Payload
    is_error: bool
    outcome: ToolOutcome
    duration: _duration_pb2.Duration
    def __init__(self, phase: _Optional[_Union[ToolPhase, str]] = ..., call_id: _Optional[str] = ..., name: _Optional[str] = ..., arguments_json: _Optional[str] = ..., result: _Optional[_Union[_run_pb2.Payload, _Mapping]] = ..., is_error: _Optional[bool] = ..., outcome: _Optional[_Union[ToolOutcome, str]] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class QueueEvent(_message.Message):
    __slots__ = ("phase", "host_run_id", "position")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    HOST_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    phase: QueuePhase
    host_run_id: str
    position: int
    def __init__(self, phase: _Optional[_Union[QueuePhase, str]] = ..., host_run_id: _Optional[str] = ..., position: _Optional[int] = ...) -> None: ...

class ApprovalEvent(_message.Message):
    __slots__ = ("phase", "approval")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_FIELD_NUMBER: _ClassVar[int]
    phase: ApprovalPhase
    approval: _approval_types_pb2.Approval
    def __init__(self, phase: _Optional[_Union[ApprovalPhase, str]] = ..., approval: _Optional[_Union[_approval_types_pb2.Approval, _Mapping]] = ...) -> None: ...

class CompactionEvent(_message.Message):
    __slots__ = ("phase", "outcome", "will_retry", "reason", "trigger", "count_before", "count_after")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    WILL_RETRY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    COUNT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    COUNT_AFTER_FIELD_NUMBER: _ClassVar[int]
    phase: CompactionPhase
    outcome: CompactionOutcome
    will_retry: bool
    reason: str
    trigger: CompactionTrigger
    count_before: int
    count_after: int
    def __init__(self, phase: _Optional[_Union[CompactionPhase, str]] = ..., outcome: _Optional[_Union[CompactionOutcome, str]] = ..., will_retry: _Optional[bool] = ..., reason: _Optional[str] = ..., trigger: _Optional[_Union[CompactionTrigger, str]] = ..., count_before: _Optional[int] = ..., count_after: _Optional[int] = ...) -> None: ...

class ItemEvent(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CommandOutputEvent(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PatchEvent(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PlanEvent(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ChatEvent(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SessionDiagnosis(_message.Message):
    __slots__ = ("event", "reason", "classification", "state", "age", "last_progress_age", "last_progress_reason", "queue_depth", "active_work", "tool_name", "call_id", "tool_age", "action", "outcome")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CLASSIFICATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    LAST_PROGRESS_AGE_FIELD_NUMBER: _ClassVar[int]
    LAST_PROGRESS_REASON_FIELD_NUMBER: _ClassVar[int]
    QUEUE_DEPTH_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_WORK_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_AGE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    event: str
    reason: str
    classification: str
    state: str
    age: _duration_pb2.Duration
    last_progress_age: _duration_pb2.Duration
    last_progress_reason: str
    queue_depth: int
    active_work: str
    tool_name: str
    call_id: str
    tool_age: _duration_pb2.Duration
    action: str
    outcome: str
    def __init__(self, event: _Optional[str] = ..., reason: _Optional[str] = ..., classification: _Optional[str] = ..., state: _Optional[str] = ..., age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., last_progress_age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., last_progress_reason: _Optional[str] = ..., queue_depth: _Optional[int] = ..., active_work: _Optional[str] = ..., tool_name: _Optional[str] = ..., call_id: _Optional[str] = ..., tool_age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., action: _Optional[str] = ..., outcome: _Optional[str] = ...) -> None: ...

class DiagnosticEvent(_message.Message):
    __slots__ = ("source", "text", "diagnosis")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSIS_FIELD_NUMBER: _ClassVar[int]
    source: str
    text: str
    diagnosis: SessionDiagnosis
    def __init__(self, source: _Optional[str] = ..., text: _Optional[str] = ..., diagnosis: _Optional[_Union[SessionDiagnosis, _Mapping]] = ...) -> None: ...

class DeliveryEvent(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
