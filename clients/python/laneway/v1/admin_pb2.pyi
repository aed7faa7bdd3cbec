import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AuditKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIT_KIND_UNSPECIFIED: _ClassVar[AuditKind]
    AUDIT_KIND_RUN: _ClassVar[AuditKind]
    AUDIT_KIND_TOOL: _ClassVar[AuditKind]
    AUDIT_KIND_MESSAGE: _ClassVar[AuditKind]

class AuditAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIT_ACTION_UNSPECIFIED: _ClassVar[AuditAction]
    AUDIT_ACTION_RUN_STARTED: _ClassVar[AuditAction]
    AUDIT_ACTION_RUN_FINISHED: _ClassVar[AuditAction]
    AUDIT_ACTION_TOOL_STARTED: _ClassVar[AuditAction]
    AUDIT_ACTION_TOOL_FINISHED: _ClassVar[AuditAction]
    AUDIT_ACTION_MESSAGE_INBOUND_PROCESSED: _ClassVar[AuditAction]

class AuditStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIT_STATUS_UNSPECIFIED: _ClassVar[AuditStatus]
    AUDIT_STATUS_STARTED: _ClassVar[AuditStatus]
    AUDIT_STATUS_SUCCEEDED: _ClassVar[AuditStatus]
    AUDIT_STATUS_FAILED: _ClassVar[AuditStatus]
    AUDIT_STATUS_CANCELLED: _ClassVar[AuditStatus]
    AUDIT_STATUS_TIMED_OUT: _ClassVar[AuditStatus]
    AUDIT_STATUS_BLOCKED: _ClassVar[AuditStatus]
    AUDIT_STATUS_UNKNOWN: _ClassVar[AuditStatus]
    AUDIT_STATUS_OBSERVED: _ClassVar[AuditStatus]

class AuditActor(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIT_ACTOR_UNSPECIFIED: _ClassVar[AuditActor]
    AUDIT_ACTOR_CALLER: _ClassVar[AuditActor]
    AUDIT_ACTOR_AGENT: _ClassVar[AuditActor]
    AUDIT_ACTOR_SERVICE: _ClassVar[AuditActor]

class AuditDirection(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIT_DIRECTION_UNSPECIFIED: _ClassVar[AuditDirection]
    AUDIT_DIRECTION_INBOUND: _ClassVar[AuditDirection]
    AUDIT_DIRECTION_OUTBOUND: _ClassVar[AuditDirection]
AUDIT_KIND_UNSPECIFIED: AuditKind
AUDIT_KIND_RUN: AuditKind
AUDIT_KIND_TOOL: AuditKind
AUDIT_KIND_MESSAGE: AuditKind
AUDIT_ACTION_UNSPECIFIED: AuditAction
AUDIT_ACTION_RUN_STARTED: AuditAction
AUDIT_ACTION_RUN_FINISHED: AuditAction
AUDIT_ACTION_TOOL_STARTED: AuditAction
AUDIT_ACTION_TOOL_FINISHED: AuditAction
AUDIT_ACTION_MESSAGE_INBOUND_PROCESSED: AuditAction
AUDIT_STATUS_UNSPECIFIED: AuditStatus
AUDIT_STATUS_STARTED: AuditStatus
AUDIT_STATUS_SUCCEEDED: AuditStatus
AUDIT_STATUS_FAILED: AuditStatus
AUDIT_STATUS_CANCELLED: AuditStatus
AUDIT_STATUS_TIMED_OUT: AuditStatus
AUDIT_STATUS_BLOCKED: AuditStatus
AUDIT_STATUS_UNKNOWN: AuditStatus
AUDIT_STATUS_OBSERVED: AuditStatus
AUDIT_ACTOR_UNSPECIFIED: AuditActor
AUDIT_ACTOR_CALLER: AuditActor
AUDIT_ACTOR_AGENT: AuditActor
AUDIT_ACTOR_SERVICE: AuditActor
AUDIT_DIRECTION_UNSPECIFIED: AuditDirection
AUDIT_DIRECTION_INBOUND: AuditDirection
AUDIT_DIRECTION_OUTBOUND: AuditDirection

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("version", "features", "started_at", "draining", "lanes", "runs_by_state", "sessions", "subscribers", "store")
    class RunsByStateEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    RUNS_BY_STATE_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBERS_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    version: str
    features: _containers.RepeatedScalarFieldContainer[str]
    started_at: _timestamp_pb2.Timestamp
    draining: bool
    lanes: _containers.RepeatedCompositeFieldContainer[LaneStatus]
    runs_by_state: _containers.ScalarMap[str, int]
    sessions: int
    subscribers: int
    store: StoreStatus
    def __init__(self, version: _Optional[str] = ..., features: _Optional[_Iterable[str]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., draining: _Optional[bool] = ..., lanes: _Optional[_Iterable[_Union[LaneStatus, _Mapping]]] = ..., runs_by_state: _Optional[_Mapping[str, int]] = ..., sessions: _Optional[int] = ..., subscribers: _Optional[int] = ..., store: _Optional[_Union[StoreStatus, _Mapping]] = ...) -> None: ...

class LaneStatus(_message.Message):
    __slots__ = ("name", "width", "active", "queued")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    name: str
    width: int
    active: int
    queued: int
    def __init__(self, name: _Optional[str] = ..., width: _Optional[int] = ..., active: _Optional[int] = ..., queued: _Optional[int] = ...) -> None: ...

class StoreStatus(_message.Message):
    __slots__ = ("path", "bytes", "commit_ms")
    PATH_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    COMMIT_MS_FIELD_NUMBER: _ClassVar[int]
    path: str
    bytes: int
    commit_ms: float
    def __init__(self, path: _Optional[str] = ..., bytes: _Optional[int] = ..., commit_ms: _Optional[float] = ...) -> None: ...

class ListAuditRecordsRequest(_message.Message):
    __slots__ = ("agent_id", "session_key", "run_id", "kind", "status", "direction", "channel", "after", "before", "page_size", "page_token")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_key: str
    run_id: str
    kind: AuditKind
    status: AuditStatus
    direction: AuditDirection
    channel: str
    after: _timestamp_pb2.Timestamp
    before: _timestamp_pb2.Timestamp
    page_size: int
    page_token: str
    def __init__(self, agent_id: _Optional[str] = ..., session_key: _Optional[str] = ..., run_id: _Optional[str] = ..., kind: _Optional[_Union[AuditKind, str]] = ..., status: _Optional[_Union[AuditStatus, str]] = ..., direction: _Optional[_Union[AuditDirection, str]] = ..., channel: _Optional[str] = ..., after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., before: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAuditRecordsResponse(_message.Message):
    __slots__ = ("records", "next_page_token")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[AuditRecord]
    next_page_token: str
    def __init__(self, records: _Optional[_Iterable[_Union[AuditRecord, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class AuditRecord(_message.Message):
    __slots__ = ("event_id", "sequence", "schema_version", "time", "actor", "kind", "action", "status", "code", "source_seq", "redaction", "agent_id", "session_key", "session_id", "run_id", "tool_name", "tool_call", "direction", "channel", "account", "conversation", "thread")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_SEQ_FIELD_NUMBER: _ClassVar[int]
    REDACTION_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    sequence: int
    schema_version: int
    time: _timestamp_pb2.Timestamp
    actor: AuditActor
    kind: AuditKind
    action: AuditAction
    status: AuditStatus
    code: str
    source_seq: int
    redaction: str
    agent_id: str
    session_key: str
    session_id: str
    run_id: str
    tool_name: str
    tool_call: str
    direction: AuditDirection
    channel: str
    account: str
    conversation: str
    thread: str
    def __init__(self, event_id: _Optional[str] = ..., sequence: _Optional[int] = ..., schema_version: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., actor: _Optional[_Union[AuditActor, str]] = ..., kind: _Optional[_Union[AuditKind, str]] = ..., action: _Optional[_Union[AuditAction, str]] = ..., status: _Optional[_Union[AuditStatus, str]] = ..., code: _Optional[str] = ..., source_seq: _Optional[int] = ..., redaction: _Optional[str] = ..., agent_id: _Optional[str] = ..., session_key: _Optional[str] = ..., session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., tool_name: _Optional[str] = ..., tool_call: _Optional[str] = ..., direction: _Optional[_Union[AuditDirection, str]] = ..., channel: _Optional[str] = ..., account: _Optional[str] = ..., conversation: _Optional[str] = ..., thread: _Optional[str] = ...) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DrainResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
