import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ApprovalStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    APPROVAL_STATUS_UNSPECIFIED: _ClassVar[ApprovalStatus]
    APPROVAL_STATUS_PENDING: _ClassVar[ApprovalStatus]
    APPROVAL_STATUS_APPROVED: _ClassVar[ApprovalStatus]
    APPROVAL_STATUS_DENIED: _ClassVar[ApprovalStatus]
    APPROVAL_STATUS_EXPIRED: _ClassVar[ApprovalStatus]
    APPROVAL_STATUS_WITHDRAWN: _ClassVar[ApprovalStatus]

class ApprovalDecision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    APPROVAL_DECISION_UNSPECIFIED: _ClassVar[ApprovalDecision]
    APPROVAL_DECISION_ALLOW_ONCE: _ClassVar[ApprovalDecision]
    APPROVAL_DECISION_ALLOW_ALWAYS: _ClassVar[ApprovalDecision]
    APPROVAL_DECISION_DENY: _ClassVar[ApprovalDecision]
APPROVAL_STATUS_UNSPECIFIED: ApprovalStatus
APPROVAL_STATUS_PENDING: ApprovalStatus
APPROVAL_STATUS_APPROVED: ApprovalStatus
APPROVAL_STATUS_DENIED: ApprovalStatus
APPROVAL_STATUS_EXPIRED: ApprovalStatus
APPROVAL_STATUS_WITHDRAWN: ApprovalStatus
APPROVAL_DECISION_UNSPECIFIED: ApprovalDecision
APPROVAL_DECISION_ALLOW_ONCE: ApprovalDecision
APPROVAL_DECISION_ALLOW_ALWAYS: ApprovalDecision
APPROVAL_DECISION_DENY: ApprovalDecision

class Approval(_message.Message):
    __slots__ = ("approval_id", "run_id", "session_key", "call_id", "tool", "command", "cwd", "reason", "requested_at", "expires_at", "status", "decision", "decided_at", "decided_by", "allowed_decisions")
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    DECIDED_AT_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_DECISIONS_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    run_id: str
    session_key: str
    call_id: str
    tool: str
    command: str
    cwd: str
    reason: str
    requested_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    status: ApprovalStatus
    decision: ApprovalDecision
    decided_at: _timestamp_pb2.Timestamp
    decided_by: str
    allowed_decisions: _containers.RepeatedScalarFieldContainer[ApprovalDecision]
    def __init__(self, approval_id: _Optional[str] = ..., run_id: _Optional[str] = ..., session_key: _Optional[str] = ..., call_id: _Optional[str] = ..., tool: _Optional[str] = ..., command: _Optional[str] = ..., cwd: _Optional[str] = ..., reason: _Optional[str] = ..., requested_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., status: _Optional[_Union[ApprovalStatus, str]] = ..., decision: _Optional[_Union[ApprovalDecision, str]] = ..., decided_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., decided_by: _Optional[str] = ..., allowed_decisions: _Optional[_Iterable[_Union[ApprovalDecision, str]]] = ...) -> None: ...
