"""Which message may go into a run that is at work (spec 02, R-2.70)."""

from dataclasses import replace
from typing import Any

import pytest
from tests.fakes.store_commands import a_request

from lanewayd.queueing.steering import can_join

HOST = a_request(queue_mode="followup", message="first", tools_allow=("read", "write"))
LIKE_HOST = replace(HOST, queue_mode="steer", message="another", label="mine", metadata={"k": "v"}, traceparent="00-1")


@pytest.mark.parametrize(
    "difference",
    [
        {},
        {"tools_allow": ("write", "read")},
        {"timeout_s": 5.0},
        {"max_turns": 3},
        {"lane": "other"},
    ],
)
def test_a_message_that_the_run_can_answer_as_it_is_goes_into_it(difference: dict[str, Any]) -> None:
    assert can_join(HOST, replace(LIKE_HOST, **difference))


@pytest.mark.parametrize(
    "difference",
    [
        {"agent_id": "another"},
        {"model": "acme/other"},
        {"thinking": "high"},
        {"max_output_tokens": 9},
        {"temperature": 0.5},
        {"seed": 1},
        {"extra_system_prompt": "be brief"},
        {"response_schema_json": "{}"},
        {"tools_allow": ("read",)},
        {"tools_deny": ("exec",)},
        {"parent_run_id": "run_1"},
        {"channel": "chat"},
        {"to": "somebody"},
        {"account_id": "a"},
        {"thread_id": "t"},
    ],
)
def test_a_message_that_asks_for_something_else_does_not(difference: dict[str, Any]) -> None:
    assert not can_join(HOST, replace(LIKE_HOST, **difference))


def test_a_message_does_not_share_a_structured_answer() -> None:
    host = replace(HOST, response_schema_json='{"type":"object"}')
    assert not can_join(host, replace(LIKE_HOST, response_schema_json='{"type":"object"}'))
