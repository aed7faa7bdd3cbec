"""What a call used and cost once it has ended, also one that failed (spec 08, R-8.75 to R-8.77)."""

import pytest

from lanewayd.loop.costs import with_cost
from lanewayd.messages import AssistantMessage, Prices, RunError, StopReason, Text, Usage
from lanewayd.providers.interface import Done, Failed

PRICES = Prices(input=1.0, output=2.0)
NOT_SAID = Usage(unavailable=True)
SAID = Usage(1_000_000, 500_000)
COST = 2.0


def message(text: str, usage: Usage) -> AssistantMessage:
    return AssistantMessage((Text(text),) if text else (), "acme", "m", StopReason.ERROR, usage)


def test_an_answer_costs_what_its_usage_says() -> None:
    outcome = with_cost(Done(message("hi", SAID)), PRICES)
    assert isinstance(outcome, Done)
    assert outcome.message.usage == Usage(1_000_000, 500_000, cost_usd=COST)


@pytest.mark.parametrize(
    ("reason", "status", "text", "usage", "expected"),
    [
        ("PROVIDER_AUTH", 401, "", NOT_SAID, Usage()),
        ("PROVIDER_UNREACHABLE", 0, "", NOT_SAID, Usage()),
        ("PROVIDER_STREAM_CUT", 200, "", NOT_SAID, NOT_SAID),
        ("PROVIDER_STREAM_CUT", 200, "hal", NOT_SAID, NOT_SAID),
        ("PROVIDER_UNREACHABLE", 0, "hal", NOT_SAID, NOT_SAID),
        ("PROVIDER_STREAM_CUT", 200, "hal", SAID, Usage(1_000_000, 500_000, cost_usd=COST)),
    ],
    ids=["refused", "no connection", "cut before a word", "cut", "lost on the way", "cut, usage told"],
)
def test_a_refused_request_used_nothing_and_what_a_cut_stream_used_is_not_known(
    reason: str, status: int, text: str, usage: Usage, expected: Usage
) -> None:
    failed = Failed(RunError(reason, "no", http_status=status), message(text, usage))
    outcome = with_cost(failed, PRICES)
    assert isinstance(outcome, Failed)
    assert outcome.partial.usage == expected
