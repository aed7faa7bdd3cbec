"""Store commands with sensible values, so that a test names only what it is about."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.events import AssistantDelta, Lifecycle, LifecyclePhase, NewEvent
from lanewayd.messages import Payload, RunError, Usage
from lanewayd.records import EntryKind, NewEntry, Priority, RunRequest, RunState
from lanewayd.store.interface import (
    AcceptRun,
    AppendToRun,
    IdempotencyKey,
    Prune,
    RunChange,
    RunEnd,
    SessionSelector,
    StartRun,
    Store,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TENANT = "default"
SESSION = "agent:main:talk"

KEEP_ALL = Prune(
    now=NOW,
    events_max_age=timedelta(days=7),
    max_events_per_run=100_000,
    events_max_bytes=2**31,
    runs_max_age=timedelta(days=30),
)


def a_request(**changes: Any) -> RunRequest:
    """The part of a run the caller gave."""
    request = RunRequest(
        message="hello", agent_id="main", lane="", priority=Priority.FOREGROUND, model="acme/m", timeout_s=60.0
    )
    return replace(request, **changes)


def a_selector(session_key: str = SESSION, **changes: Any) -> SessionSelector:
    """A session by its key."""
    selector = SessionSelector(
        session_key=session_key, session_id="", agent_id="main", label="", new_session_id=f"id of {session_key}"
    )
    return replace(selector, **changes)


def accept_run(run_id: str, session_key: str = SESSION, **changes: Any) -> AcceptRun:
    """A message for a session."""
    command = AcceptRun(
        tenant=TENANT,
        run_id=run_id,
        session=a_selector(session_key),
        request=a_request(),
        key=None,
        now=NOW,
        max_depth=5,
    )
    return replace(command, **changes)


def a_refusal() -> LanewayError:
    """What a full service says to a new message."""
    return LanewayError(ErrorCode.QUEUE_FULL, "no room")


def a_key(key: str = "key", request: bytes = b"hash", **changes: Any) -> IdempotencyKey:
    """A caller's key."""
    return replace(IdempotencyKey(key, request, 1, timedelta(hours=24)), **changes)


def start_run(run_id: str, **changes: Any) -> StartRun:
    """The first start, with its event."""
    started = NewEvent(NOW, Lifecycle(LifecyclePhase.START, RunState.RUNNING, started_at=NOW))
    return replace(StartRun(run_id, NOW, recovered=False, events=(started,)), **changes)


def append_to(run_id: str, first_seq: int, *changes: RunChange, claim: int = 1) -> AppendToRun:
    """What the run does next."""
    return AppendToRun(run_id, claim, first_seq, changes)


def says(*texts: str) -> RunChange:
    """One delta event for each text."""
    return RunChange(events=tuple(NewEvent(NOW, AssistantDelta("m1", 0, 0, text)) for text in texts))


def ends(state: RunState = RunState.SUCCEEDED, *, at: datetime = NOW, **changes: Any) -> RunChange:
    """The end of a run with its terminal event; `changes` are of its RunEnd."""
    end = replace(RunEnd(state, at, "stop", payloads=(Payload("done", total_bytes=4),), usage=Usage(10, 5)), **changes)
    is_good = state in (RunState.SUCCEEDED, RunState.CANCELLED)
    terminal = Lifecycle(
        LifecyclePhase.END if is_good else LifecyclePhase.ERROR,
        state.value,
        stop_reason=end.stop_reason,
        error=end.error,
    )
    return RunChange(events=(NewEvent(at, terminal),), end=end)


def fails(message: str = "no such host", *, at: datetime = NOW) -> RunChange:
    """The end of a run that failed."""
    error = RunError("PROVIDER_UNREACHABLE", message, provider="acme", model="m", retryable=True)
    return ends(RunState.FAILED, at=at, error=error, stop_reason="error")


def an_entry(entry_id: str, kind: EntryKind = EntryKind.USER, body_json: str = "{}") -> NewEntry:
    """A transcript entry."""
    return NewEntry(entry_id, NOW, kind, body_json)


async def running(store: Store, run_id: str, session_key: str = SESSION) -> None:
    """Accept and start a run: it has claim 1 and one event."""
    await store.accept(accept_run(run_id, session_key))
    await store.start(start_run(run_id))


async def ended(store: Store, run_id: str, session_key: str = SESSION, *, at: datetime = NOW, texts: int = 0) -> None:
    """A run of `texts` + 2 events that has ended."""
    await running(store, run_id, session_key)
    said = says(*(f"text {number}" for number in range(texts)))
    await store.append(append_to(run_id, 2, said, ends(at=at)))
