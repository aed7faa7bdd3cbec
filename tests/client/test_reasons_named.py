"""The READMEs of the clients name every reason of the classes whose reasons a caller has to tell apart."""

from pathlib import Path

import grpc
import pytest

from lanewayd.rpc.status import STATUS_CODES

CLIENTS = Path(__file__).parents[2] / "clients"


@pytest.mark.parametrize(
    ("page", "error_class"),
    [("python/README.md", "PreconditionFailed"), ("typescript/README.md", "PreconditionFailedError")],
)
def test_every_reason_of_a_failed_precondition_is_named(page: str, error_class: str) -> None:
    [row] = [line for line in (CLIENTS / page).read_text().splitlines() if line.startswith(f"| `{error_class}` |")]
    reasons = [code.value for code, status in STATUS_CODES.items() if status is grpc.StatusCode.FAILED_PRECONDITION]
    assert [reason for reason in reasons if f"`{reason}`" not in row] == []
