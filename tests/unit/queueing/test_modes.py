"""What holds for a message of the queue: R-2.36 to R-2.38."""

import pytest

from lanewayd.queueing.modes import QueueDefaults
from lanewayd.records import DropPolicy, QueueChoice, QueueMode

COLLECT, FOLLOWUP, INTERRUPT, STEER = QueueMode.COLLECT, QueueMode.FOLLOWUP, QueueMode.INTERRUPT, QueueMode.STEER


@pytest.mark.parametrize(
    ("defaults", "channel", "mode"),
    [
        (QueueDefaults(), "", FOLLOWUP),
        (QueueDefaults(), "sms", STEER),
        (QueueDefaults(COLLECT), "", COLLECT),
        (QueueDefaults(COLLECT), "sms", COLLECT),
        (QueueDefaults(COLLECT, {"sms": INTERRUPT}), "sms", INTERRUPT),
        (QueueDefaults(COLLECT, {"sms": INTERRUPT}), "SMS", INTERRUPT),
        (QueueDefaults(COLLECT, {"sms": INTERRUPT}), "mail", COLLECT),
        (QueueDefaults(None, {"sms": INTERRUPT}), "mail", STEER),
        (QueueDefaults(None, {"sms": INTERRUPT}), "", FOLLOWUP),
    ],
)
def test_the_mode_of_a_channel_comes_before_that_of_the_service(
    defaults: QueueDefaults, channel: str, mode: QueueMode
) -> None:
    assert defaults.rules_for(channel).mode is mode


@pytest.mark.parametrize(("channel", "quiet_s"), [("", 0.25), ("mail", 0.25), ("sms", 2.0), ("Sms", 2.0)])
def test_the_debounce_of_a_channel_comes_before_that_of_the_service(channel: str, quiet_s: float) -> None:
    assert QueueDefaults(quiet_s=0.25, quiet_s_by_channel={"sms": 2.0}).rules_for(channel).quiet_s == quiet_s


def test_what_is_chosen_later_wins_and_what_it_leaves_out_stays() -> None:
    rules = QueueDefaults(FOLLOWUP, {"sms": INTERRUPT}, cap=7, drop=DropPolicy.OLD, quiet_s=3.0).rules_for("sms")
    of_session = rules.chosen(QueueChoice("collect", debounce_ms=0, cap=2))
    assert (of_session.mode, of_session.quiet_s, of_session.cap, of_session.drop) == (COLLECT, 0.0, 2, DropPolicy.OLD)
    of_message = of_session.chosen(QueueChoice("steer", drop="new"))
    assert (of_message.mode, of_message.quiet_s, of_message.cap, of_message.drop) == (STEER, 0.0, 2, DropPolicy.NEW)
    assert rules.chosen(QueueChoice()) == rules
