"""Runs, tool events and messages as audit records."""

from datetime import UTC, datetime

import pytest
from tests.fakes.rpc_rows import make_run

from lanewayd.audit.activity import Pseudonyms, RunFacts, acts_of_tools, is_direct, run_finished
from lanewayd.audit_records import AuditAction, AuditActor, AuditStatus
from lanewayd.events import NewEvent, ToolPhase, ToolProgress
from lanewayd.messages import RunError, ToolOutcome
from lanewayd.records import RunState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FACTS = RunFacts("default", "run_1", "main", "agent:main:s", "s1")


@pytest.mark.parametrize(
    ("state", "stop_reason", "reason", "expected"),
    [
        (RunState.SUCCEEDED, "a word of the model", "", (AuditStatus.SUCCEEDED, "", AuditActor.AGENT)),
        (RunState.FAILED, "error", "PROVIDER_AUTH", (AuditStatus.FAILED, "PROVIDER_AUTH", AuditActor.AGENT)),
        (RunState.FAILED, "error", "not a word", (AuditStatus.FAILED, "", AuditActor.AGENT)),
        (RunState.TIMED_OUT, "deadline", "RUN_DEADLINE", (AuditStatus.TIMED_OUT, "RUN_DEADLINE", AuditActor.SERVICE)),
        *(
            (RunState.CANCELLED, stop, "", (AuditStatus.CANCELLED, stop, AuditActor.CALLER))
            for stop in ("rpc", "stop_word", "interrupt", "reset", "deleted")
        ),
        (RunState.CANCELLED, "dropped", "", (AuditStatus.CANCELLED, "dropped", AuditActor.SERVICE)),
    ],
)
def test_the_end_of_a_run_says_how_why_and_who(
    state: RunState, stop_reason: str, reason: str, expected: tuple[AuditStatus, str, AuditActor]
) -> None:
    error = RunError(reason, "a text that is in no record") if reason else None
    record = run_finished(make_run(state=state, stop_reason=stop_reason, error=error, ended_at=NOW, last_seq=7))
    assert (record.status, record.code, record.actor) == expected
    assert (record.action, record.at, record.source_seq) == (AuditAction.RUN_FINISHED, NOW, 7)


def step(phase: ToolPhase, call_id: str = "c1", outcome: ToolOutcome | None = None) -> NewEvent:
    return NewEvent(NOW, ToolProgress(phase, call_id, "exec", outcome=outcome))


def test_a_call_that_was_never_launched_has_only_an_end() -> None:
    steps = [step(ToolPhase.START), step(ToolPhase.RESULT, outcome=ToolOutcome.ABORTED), step(ToolPhase.START, "c2")]
    records = acts_of_tools(FACTS, list(zip(steps, (4, 5, 6), strict=True)), tool_of=lambda name: name)
    assert [(record.action, record.source_seq) for record in records] == [
        (AuditAction.TOOL_FINISHED, 5),
        (AuditAction.TOOL_STARTED, 6),
    ]
    assert len({record.tool_call for record in records}) == 2


@pytest.mark.parametrize("outcome", ToolOutcome)
def test_every_outcome_has_a_status(outcome: ToolOutcome) -> None:
    [record] = acts_of_tools(FACTS, [(step(ToolPhase.RESULT, outcome=outcome), 1)], tool_of=lambda name: name)
    assert (record.status is AuditStatus.SUCCEEDED) == (outcome is ToolOutcome.OK)
    assert bool(record.code) == (outcome is not ToolOutcome.OK)


def test_the_progress_of_a_call_is_no_act() -> None:
    assert acts_of_tools(FACTS, [(step(ToolPhase.UPDATE), 1)], tool_of=lambda name: name) == []


def test_a_pseudonym_depends_on_key_kind_and_tenant() -> None:
    ours, theirs = Pseudonyms(b"k" * 32), Pseudonyms(b"l" * 32)
    names = {
        ours.of("account", "one", "x"),
        ours.of("thread", "one", "x"),
        ours.of("account", "two", "x"),
        ours.of("account", "one", "y"),
        theirs.of("account", "one", "x"),
    }
    assert len(names) == 5
    assert ours.of("account", "one", "x") in names
    assert ours.of("account", "one", "") == ""


@pytest.mark.parametrize(
    ("session_key", "expected"),
    [
        ("agent:main:direct:peer", True),
        ("agent:main:mail:direct:peer", True),
        ("agent:main:mail:account:direct:peer", True),
        ("agent:main:direct", False),
        ("agent:main:main", False),
        ("agent:main:mail:group:peer", False),
        ("agent:main:mail:group:direct", False),
        ("agent:main:mail:group:direct:peer", False),
        ("agent:main:mail:channel:direct:peer", False),
        ("agent:main:mail:direct:peer:thread:7", True),
    ],
)
def test_only_a_key_that_proves_it_is_a_direct_conversation(session_key: str, expected: bool) -> None:
    assert is_direct(session_key) is expected
