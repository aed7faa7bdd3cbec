"""Each row of the tables of spec 02, 8.2 and 8.3, and the back-off of what is told."""

from dataclasses import replace

import pytest

from lanewayd.diagnostics.liveness import (
    Action,
    Diagnosis,
    Health,
    OpenTool,
    SessionLook,
    Thresholds,
    Work,
    abort_after_s,
    action_for,
    diagnose,
    next_warning_s,
)

T = Thresholds()
SILENT = SessionLook(
    tenant="t",
    session_key="s",
    run_id="r",
    generation=1,
    has_owner=True,
    work=Work.MODEL_CALL,
    age_s=121.0,
    progress_age_s=121.0,
)
TOOL = OpenTool("exec", "call", age_s=121.0)


def look(**changes: object) -> SessionLook:
    return replace(SILENT, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "health", "reason", "classification"),
    [
        pytest.param(
            look(work=None, has_owner=False, queue_depth=1),
            Health.STUCK,
            "queued_work_without_active_run",
            "stale_session_state",
            id="1: queued, nobody at work",
        ),
        pytest.param(
            look(work=Work.TOOL_CALL, tool=TOOL),
            Health.STALLED,
            "blocked_tool_call",
            "blocked_tool_call",
            id="2: a silent tool",
        ),
        pytest.param(
            look(work=Work.TOOL_CALL, tool=TOOL, has_owner=False),
            Health.STALLED,
            "blocked_tool_call",
            "blocked_tool_call",
            id="2: a silent tool without owner",
        ),
        pytest.param(
            look(work=Work.TOOL_CALL, tool=TOOL, progress_age_s=120.0),
            Health.LONG_RUNNING,
            "active_work",
            "long_running",
            id="7: a long tool call beside progress",
        ),
        pytest.param(
            look(work=Work.OTHER, has_ended=True, queue_depth=1),
            Health.STALLED,
            "queued_behind_terminal_active_work",
            "stalled_agent_run",
            id="3: behind an ended run",
        ),
        pytest.param(
            look(progress_age_s=359.9),
            Health.LONG_RUNNING,
            "owned_silent_model_call",
            "long_running",
            id="4: a silent model call",
        ),
        pytest.param(
            look(progress_age_s=360.0),
            Health.STALLED,
            "active_work_without_progress",
            "stalled_agent_run",
            id="5: for too long",
        ),
        pytest.param(
            look(has_owner=False),
            Health.STALLED,
            "active_work_without_progress",
            "stalled_agent_run",
            id="6: a model call without owner is never long running (R-2.114)",
        ),
        pytest.param(
            look(work=Work.OTHER),
            Health.STALLED,
            "active_work_without_progress",
            "stalled_agent_run",
            id="6: other silent work",
        ),
        pytest.param(
            look(work=Work.TOOL_CALL, tool=replace(TOOL, age_s=5.0)),
            Health.STALLED,
            "active_work_without_progress",
            "stalled_agent_run",
            id="6: a tool that has just begun is not to blame",
        ),
        pytest.param(
            look(progress_age_s=10.0), Health.LONG_RUNNING, "active_work", "long_running", id="7: fresh progress"
        ),
        pytest.param(
            look(progress_age_s=10.0, queue_depth=2),
            Health.LONG_RUNNING,
            "queued_behind_active_work",
            "long_running",
            id="7: with a queue",
        ),
        pytest.param(
            look(work=None, progress_age_s=10.0),
            Health.LONG_RUNNING,
            "untracked_active_progress",
            "long_running",
            id="8: progress of nobody",
        ),
        pytest.param(
            look(work=None, progress_age_s=10.0, queue_depth=1),
            Health.LONG_RUNNING,
            "queued_behind_untracked_progress",
            "long_running",
            id="8: with a queue",
        ),
        pytest.param(
            look(work=None), Health.STUCK, "stale_session_state", "stale_session_state", id="9: nothing at all"
        ),
    ],
)
def test_the_first_row_that_fits_is_the_diagnosis(
    seen: SessionLook, health: Health, reason: str, classification: str
) -> None:
    assert diagnose(seen, T) == Diagnosis(health, reason, classification)


@pytest.mark.parametrize("work", [None, *Work])
def test_a_session_with_a_recent_sign_of_life_has_no_diagnosis(work: Work | None) -> None:
    assert diagnose(look(work=work, age_s=120.0, progress_age_s=9_999.0), T) is None


@pytest.mark.parametrize(
    ("seen", "action"),
    [
        pytest.param(look(progress_age_s=359.9), Action.NONE, id="slow is not stuck"),
        pytest.param(look(progress_age_s=360.0), Action.ABORT_RUN, id="a model call, at the threshold"),
        pytest.param(look(work=Work.OTHER, progress_age_s=359.9), Action.OBSERVE_ONLY, id="other work, before it"),
        pytest.param(look(work=Work.OTHER, progress_age_s=360.0), Action.ABORT_RUN, id="other work, at it"),
        pytest.param(look(work=Work.TOOL_CALL, tool=TOOL, progress_age_s=899.9), Action.OBSERVE_ONLY, id="a tool"),
        pytest.param(
            look(work=Work.TOOL_CALL, tool=TOOL, progress_age_s=900.0), Action.ABORT_RUN, id="a tool, 15 minutes"
        ),
        pytest.param(
            look(work=Work.TOOL_CALL, tool=replace(TOOL, limit_s=1800.0), progress_age_s=1814.9),
            Action.OBSERVE_ONLY,
            id="a tool that ends by itself later",
        ),
        pytest.param(
            look(work=Work.TOOL_CALL, tool=replace(TOOL, limit_s=1800.0), progress_age_s=1815.0),
            Action.ABORT_RUN,
            id="a tool that should have ended by itself",
        ),
        pytest.param(look(has_owner=False, age_s=299.9), Action.KEEP_LANE, id="no owner, young"),
        pytest.param(look(has_owner=False, age_s=300.0), Action.RELEASE_LANE, id="no owner, old"),
        pytest.param(look(work=None, queue_depth=1), Action.RELEASE_LANE, id="nothing at work, some wait"),
        pytest.param(look(work=None), Action.NONE, id="nothing to do"),
    ],
)
def test_what_is_done_about_it(seen: SessionLook, action: Action) -> None:
    diagnosis = diagnose(seen, T)
    assert diagnosis is not None
    assert action_for(seen, diagnosis, T) is action


def test_a_session_is_told_of_less_and_less_often() -> None:
    ages, previous = [], None
    for _ in range(5):
        previous = next_warning_s(T, previous)
        ages.append(previous)
    assert ages == [120.0, 240.0, 480.0, 960.0, 1920.0]


@pytest.mark.parametrize(("warn_s", "abort_s"), [(1.0, 300.0), (100.0, 300.0), (120.0, 360.0), (600.0, 1800.0)])
def test_the_abort_threshold_follows_the_warning(warn_s: float, abort_s: float) -> None:
    assert abort_after_s(warn_s) == abort_s
