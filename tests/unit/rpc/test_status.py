"""rpc/status.py: the table, the details, and B-079: text and details stay small."""

import urllib.parse

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from lanewayd.errors import ErrorCode, FieldError, LanewayError, StoreUnavailable
from lanewayd.rpc.status import STATUS_CODES, status_code, status_of, status_text

_CONTRACT = {
    grpc.StatusCode.INVALID_ARGUMENT: "MALFORMED_MESSAGE MESSAGE_EMPTY MESSAGE_TOO_LONG ATTACHMENT_TOO_LARGE "
    "SESSION_KEY_MALFORMED "
    "IDEMPOTENCY_KEY_MALFORMED TIMEOUT_INVALID ENUM_UNKNOWN PAGE_TOKEN_INVALID MODEL_UNKNOWN FIELD_INVALID",
    grpc.StatusCode.NOT_FOUND: "RUN_NOT_FOUND SESSION_NOT_FOUND AGENT_NOT_FOUND ENTRY_NOT_FOUND",
    grpc.StatusCode.ALREADY_EXISTS: "IDEMPOTENCY_KEY_REUSED",
    # The contract names SESSION_BUSY as the end of a run; calls that write under the session's lock meet it too. And it
    # does not name SESSION_ARCHIVED: a message for a session that its user has put away.
    grpc.StatusCode.FAILED_PRECONDITION: "MODEL_NOT_CONFIGURED SESSION_ACTIVE SESSION_BUSY SESSION_ARCHIVED "
    "NESTED_IN_SESSION",
    grpc.StatusCode.OUT_OF_RANGE: "CURSOR_PRUNED CURSOR_AHEAD",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "QUEUE_FULL TENANT_LIMIT",
    grpc.StatusCode.UNAVAILABLE: "DRAINING STORE_UNAVAILABLE",
    grpc.StatusCode.UNIMPLEMENTED: "NOT_AVAILABLE_YET",
    grpc.StatusCode.INTERNAL: "INTERNAL",
}


def _details(status: status_pb2.Status) -> dict[str, object]:
    found: dict[str, object] = {}
    for detail in status.details:
        for kind in (error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo):
            if detail.Is(kind.DESCRIPTOR):
                message = kind()
                detail.Unpack(message)
                found[kind.DESCRIPTOR.name] = message
    assert len(found) == len(status.details)
    return found


def test_the_table_is_that_of_the_contract() -> None:
    expected = {ErrorCode(reason): code for code, reasons in _CONTRACT.items() for reason in reasons.split()}
    assert dict(STATUS_CODES) == expected


def test_the_end_of_a_run_that_leaves_a_handler_is_internal() -> None:
    assert status_code(ErrorCode.PROVIDER_STALLED) is grpc.StatusCode.INTERNAL


@pytest.mark.parametrize("code", list(STATUS_CODES))
def test_every_reason_has_error_info_and_the_details_of_its_status(code: ErrorCode) -> None:
    status = status_of(LanewayError(code, "No.", metadata={"field": "f", "run_id": "run_1"}))
    details = _details(status)
    info = details["ErrorInfo"]
    assert isinstance(info, error_details_pb2.ErrorInfo)
    assert (info.domain, info.reason) == ("laneway", code.value)
    assert dict(info.metadata) == {"field": "f", "run_id": "run_1"}
    assert status.code == STATUS_CODES[code].value[0]
    assert ("BadRequest" in details) is (STATUS_CODES[code] is grpc.StatusCode.INVALID_ARGUMENT)
    is_retryable = STATUS_CODES[code] in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert ("RetryInfo" in details) is is_retryable


def test_bad_request_names_the_field_and_the_problem() -> None:
    details = _details(status_of(FieldError(ErrorCode.MESSAGE_EMPTY, "message", "A message needs a text.")))
    bad_request = details["BadRequest"]
    assert isinstance(bad_request, error_details_pb2.BadRequest)
    [violation] = bad_request.field_violations
    assert (violation.field, violation.description) == ("message", "A message needs a text.")


def test_retry_info_has_the_delay_of_the_error() -> None:
    for error, delay_s in (
        (StoreUnavailable("No commit."), 1.0),
        (LanewayError(ErrorCode.QUEUE_FULL, "Full.", retry_after_s=2.5), 2.5),
        (LanewayError(ErrorCode.DRAINING, "Leaving."), 1.0),
        (LanewayError(ErrorCode.DRAINING, "Leaving.", retry_after_s=-1), 0.0),
    ):
        retry = _details(status_of(error))["RetryInfo"]
        assert isinstance(retry, error_details_pb2.RetryInfo)
        assert retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9 == delay_s


@pytest.mark.parametrize(
    "text",
    ["ü" * 50_000, "%" * 40_000 + "\n" * 1000, "x" * 100_000, "x" * 990 + "\n" * 20, "😀" * 20_000, "a\udc80" * 20_000],
)
def test_a_text_is_cut_so_that_it_fits_as_grpc_sends_it(text: str) -> None:
    short = status_text(text)
    sent = urllib.parse.quote(short.encode(), safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}~")
    assert 980 <= len(sent) <= 1000
    assert short.endswith("...")
    assert text.replace("\udc80", "\ufffd").startswith(short[:-3])


def test_a_short_text_stays_as_it_is() -> None:
    assert status_text("100 % of ünits\n") == "100 % of ünits\n"
    assert status_text("x" * 1000) == "x" * 1000


def test_details_stay_below_4_kib_whatever_the_error_holds() -> None:
    huge = {f"key{number}": "ü" * 10_000 for number in range(50)} | {"field": "x" * 100_000}
    for code in STATUS_CODES:
        status = status_of(LanewayError(code, "%ü" * 100_000, metadata=huge))
        assert status.ByteSize() < 4096
        assert "ErrorInfo" in _details(status)
