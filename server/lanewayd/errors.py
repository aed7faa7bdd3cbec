"""The errors a caller can cause or must handle, and the reasons that name them.

`ErrorCode` values are the reasons of the contract (`ErrorInfo.reason`, `RunError.reason`): stable, never renamed.
Bugs stay `ValueError` and `AssertionError`. rpc/status.py holds the one table from code to gRPC status.
"""

from collections.abc import Mapping
from enum import StrEnum


class ErrorCode(StrEnum):
    """Reasons of the contract. The first part are answers to calls, the second are ends of runs."""

    MALFORMED_MESSAGE = "MALFORMED_MESSAGE"
    MESSAGE_EMPTY = "MESSAGE_EMPTY"
    MESSAGE_TOO_LONG = "MESSAGE_TOO_LONG"
    ATTACHMENT_TOO_LARGE = "ATTACHMENT_TOO_LARGE"
    SESSION_KEY_MALFORMED = "SESSION_KEY_MALFORMED"
    IDEMPOTENCY_KEY_MALFORMED = "IDEMPOTENCY_KEY_MALFORMED"
    TIMEOUT_INVALID = "TIMEOUT_INVALID"
    ENUM_UNKNOWN = "ENUM_UNKNOWN"
    PAGE_TOKEN_INVALID = "PAGE_TOKEN_INVALID"
    MODEL_UNKNOWN = "MODEL_UNKNOWN"
    FIELD_INVALID = "FIELD_INVALID"
    RUN_NOT_FOUND = "RUN_NOT_FOUND"
    SESSION_NOT_FOUND = "SESSION_NOT_FOUND"
    AGENT_NOT_FOUND = "AGENT_NOT_FOUND"
    ENTRY_NOT_FOUND = "ENTRY_NOT_FOUND"
    IDEMPOTENCY_KEY_REUSED = "IDEMPOTENCY_KEY_REUSED"
    MODEL_NOT_CONFIGURED = "MODEL_NOT_CONFIGURED"
    SESSION_ACTIVE = "SESSION_ACTIVE"
    SESSION_ARCHIVED = "SESSION_ARCHIVED"
    NESTED_IN_SESSION = "NESTED_IN_SESSION"
    CURSOR_PRUNED = "CURSOR_PRUNED"
    CURSOR_AHEAD = "CURSOR_AHEAD"
    QUEUE_FULL = "QUEUE_FULL"
    TENANT_LIMIT = "TENANT_LIMIT"
    DRAINING = "DRAINING"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    NOT_AVAILABLE_YET = "NOT_AVAILABLE_YET"

    PROVIDER_UNREACHABLE = "PROVIDER_UNREACHABLE"
    PROVIDER_AUTH = "PROVIDER_AUTH"
    PROVIDER_MODEL_NOT_FOUND = "PROVIDER_MODEL_NOT_FOUND"
    PROVIDER_BILLING = "PROVIDER_BILLING"
    PROVIDER_REQUEST_REJECTED = "PROVIDER_REQUEST_REJECTED"
    PROVIDER_RATE_LIMITED = "PROVIDER_RATE_LIMITED"
    PROVIDER_UNAVAILABLE = "PROVIDER_UNAVAILABLE"
    PROVIDER_BAD_RESPONSE = "PROVIDER_BAD_RESPONSE"
    PROVIDER_STREAM_CUT = "PROVIDER_STREAM_CUT"
    PROVIDER_STALLED = "PROVIDER_STALLED"
    PROVIDER_REFUSED = "PROVIDER_REFUSED"
    CONTEXT_OVERFLOW = "CONTEXT_OVERFLOW"
    RUN_DEADLINE = "RUN_DEADLINE"
    RUN_STALLED = "RUN_STALLED"
    RECOVERY_EXHAUSTED = "RECOVERY_EXHAUSTED"
    SESSION_BUSY = "SESSION_BUSY"
    MAX_TURNS = "MAX_TURNS"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    OUTPUT_SCHEMA_MISMATCH = "OUTPUT_SCHEMA_MISMATCH"
    TOOLS_EMPTY = "TOOLS_EMPTY"
    INTERNAL = "INTERNAL"


class LanewayError(Exception):
    """A refusal with a stable reason. `metadata` holds the contract's keys (`field`, `run_id`, `holder` ...)."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        metadata: Mapping[str, str] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.metadata = dict(metadata or {})
        self.retry_after_s = retry_after_s


class FieldError(LanewayError):
    """An `INVALID_ARGUMENT` or `UNIMPLEMENTED` that names the field at fault, in the proto's spelling."""

    def __init__(self, code: ErrorCode, field: str, message: str) -> None:
        super().__init__(code, message, metadata={"field": field})
        self.field = field


class StoreUnavailable(LanewayError):
    """The store could not commit; nothing of the command is known to be stored (D-19)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.STORE_UNAVAILABLE, message, retry_after_s=1.0)


class ClaimLost(Exception):
    """A write of a run that another start of it, or its end, has overtaken. Internal: never shown to a caller."""


class RunNotStartable(Exception):
    """A queued run that was cancelled, ended or started before its turn came. Internal."""


class IntakeNotEmpty(Exception):
    """A run cannot end yet: messages wait to be taken in by it. Internal."""


class CollectionChanged(Exception):
    """A message that was to be collected does not wait any more, or one was dropped meanwhile. Internal."""


class StartupError(Exception):
    """The service refuses to start; the text says what is wrong and what to do. Exit code 2."""
