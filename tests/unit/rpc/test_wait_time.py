"""How long Wait waits: D-5."""

import pytest

from lanewayd.rpc.agent import wait_s


@pytest.mark.parametrize(
    ("requested_s", "remaining_s", "expected_s"),
    [
        (30.0, None, 30.0),
        (0.0, None, 0.0),
        (7200.0, None, 3600.0),
        (7200.0, 100_000.0, 3600.0),
        (5.0, 5.2, 5.0),
        (30.0, 10.0, 9.5),
        (30.0, 1.0, 0.9),
        (30.0, 0.15, 0.075),
        (30.0, 0.0, 0.0),
        (30.0, -1.0, 0.0),
        (0.0, 0.01, 0.0),
    ],
)
def test_a_wait_ends_before_the_callers_deadline(
    requested_s: float, remaining_s: float | None, expected_s: float
) -> None:
    assert wait_s(requested_s, remaining_s) == pytest.approx(expected_s)


def test_a_deadline_equal_to_the_timeout_counts_as_nearer_although_grpc_rounds_it_up() -> None:
    assert wait_s(4.0, 4.009) < 3.9
