"""Statuses as errors."""

import grpc
import pytest
from google.protobuf import any_pb2
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from laneway import errors
from laneway.errors import CursorPruned, Details, LanewayError, make_error, read_details

Code = grpc.StatusCode


def encoded(*details: object) -> bytes:
    status = status_pb2.Status(code=3, message="text")
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)  # type: ignore[arg-type]
        status.details.append(packed)
    return bytes(status.SerializeToString())


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (Code.INVALID_ARGUMENT, "MESSAGE_EMPTY", errors.InvalidRequest),
        (Code.NOT_FOUND, "RUN_NOT_FOUND", errors.NotFound),
        (Code.ALREADY_EXISTS, "IDEMPOTENCY_KEY_REUSED", errors.IdempotencyKeyReused),
        (Code.FAILED_PRECONDITION, "SESSION_ACTIVE", errors.PreconditionFailed),
        (Code.OUT_OF_RANGE, "CURSOR_PRUNED", errors.CursorPruned),
        (Code.OUT_OF_RANGE, "CURSOR_AHEAD", errors.CursorAhead),
        (Code.OUT_OF_RANGE, "", errors.CursorError),
        (Code.RESOURCE_EXHAUSTED, "QUEUE_FULL", errors.LimitReached),
        (Code.UNAVAILABLE, "DRAINING", errors.Unavailable),
        (Code.UNAVAILABLE, "", errors.Unavailable),
        (Code.DEADLINE_EXCEEDED, "", errors.DeadlineExceeded),
        (Code.UNIMPLEMENTED, "NOT_AVAILABLE_YET", errors.NotAvailable),
        (Code.UNAUTHENTICATED, "", LanewayError),
        (Code.INTERNAL, "INTERNAL", LanewayError),
    ],
)
def test_status_and_reason_choose_the_class(code: Code, reason: str, expected: type[LanewayError]) -> None:
    error = make_error(code, "what happened", Details(reason=reason))
    assert type(error) is expected
    assert (error.status, error.reason, error.message) == (code, reason, "what happened")
    assert str(error) == f"what happened ({reason or code.name})"


def test_details_are_read() -> None:
    info = error_details_pb2.ErrorInfo(reason="FIELD_INVALID", domain="laneway", metadata={"run_id": "run_1"})
    bad = error_details_pb2.BadRequest(field_violations=[{"field": "label", "description": "too long"}])
    retry = error_details_pb2.RetryInfo(retry_delay=Duration(seconds=2, nanos=500_000_000))
    details = read_details(encoded(bad, retry, info))
    assert details == Details("FIELD_INVALID", {"run_id": "run_1"}, "label", 2.5)


def test_the_field_that_the_service_names_wins() -> None:
    info = error_details_pb2.ErrorInfo(reason="FIELD_INVALID", domain="laneway", metadata={"field": "label"})
    bad = error_details_pb2.BadRequest(field_violations=[{"field": "other"}])
    assert read_details(encoded(info, bad)).field == "label"


def test_reasons_of_others_are_none_of_ours() -> None:
    info = error_details_pb2.ErrorInfo(reason="DRAINING", domain="mesh.example", metadata={"cursor": "x"})
    assert read_details(encoded(info)) == Details()


@pytest.mark.parametrize("damaged", [b"", b"\xff\xff\xff", b"plain text"])
def test_damaged_details_are_none(damaged: bytes) -> None:
    assert read_details(damaged) == Details()


def test_a_negative_suggestion_is_none_to_wait_for() -> None:
    retry = error_details_pb2.RetryInfo(retry_delay=Duration(seconds=-5))
    assert read_details(encoded(retry)).retry_after_s == 0.0


def test_cursor_errors_say_where_to_go_on() -> None:
    metadata = {"earliest_seq": "7", "latest_seq": "90", "earliest_cursor": "abc"}
    error = make_error(Code.OUT_OF_RANGE, "gone", Details("CURSOR_PRUNED", metadata))
    assert isinstance(error, CursorPruned)
    assert (error.earliest_seq, error.latest_seq, error.earliest_cursor) == (7, 90, "abc")
    bare = make_error(Code.OUT_OF_RANGE, "gone", Details("CURSOR_PRUNED", {"earliest_seq": "soon"}))
    assert isinstance(bare, CursorPruned)
    assert (bare.earliest_seq, bare.latest_seq, bare.earliest_cursor) == (None, None, "")
