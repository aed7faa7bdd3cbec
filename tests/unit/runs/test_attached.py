"""Which messages wait to go into which run, and how many of whom."""

from dataclasses import replace

import pytest
from tests.fakes.store_commands import NOW, a_request

from lanewayd.records import Disposition, Run, RunState
from lanewayd.runs.attached import AttachedMessages


def message(run_id: str, host: str, tenant: str = "t") -> Run:
    return Run(
        run_id=run_id,
        accepted_no=1,
        tenant=tenant,
        session_key="s",
        session_id="id",
        request=a_request(),
        state=RunState.QUEUED,
        disposition=Disposition.STEERED,
        queue_position=0,
        accepted_at=NOW,
        host_run_id=host,
    )


@pytest.fixture
def attached() -> AttachedMessages:
    """Two messages for `one`, and one of another tenant for `two`."""
    messages = AttachedMessages()
    for run_id, host, tenant in [("a", "one", "t"), ("b", "one", "t"), ("c", "two", "u")]:
        messages.add(message(run_id, host, tenant))
    return messages


def counts(attached: AttachedMessages) -> tuple[int, int, int]:
    return attached.count, attached.count_of("t"), attached.count_of("u")


def test_they_are_kept_by_host_in_the_order_in_which_they_came(attached: AttachedMessages) -> None:
    assert [run.run_id for run in attached.of("one")] == ["a", "b"]
    assert list(attached.of("none")) == []
    assert counts(attached) == (3, 2, 1)


def test_one_that_has_ended_is_taken_out_once_though_its_row_names_no_host(attached: AttachedMessages) -> None:
    ended = replace(message("a", "one"), host_run_id="", state=RunState.CANCELLED)
    assert attached.take_out(ended.run_id) == "one"
    assert attached.take_out(ended.run_id) == ""
    assert [run.run_id for run in attached.of("one")] == ["b"]
    assert counts(attached) == (2, 1, 1)


def test_a_host_that_is_gone_leaves_nothing_behind(attached: AttachedMessages) -> None:
    attached.forget("one")
    attached.forget("one")
    assert attached.take_out("b") == ""
    assert counts(attached) == (1, 0, 1)
