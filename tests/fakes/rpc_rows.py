"""Rows as the rpc layer gets them from the service, with what a test does not care about filled in."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lanewayd.events import EventPayload, StoredEvent, is_terminal, kind_of
from lanewayd.records import Disposition, Priority, Run, RunRequest, RunState, Session
from lanewayd.rpc.event_codec import WireEventCodec

ACCEPTED_AT = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
STORE_ID = "store-1"


def make_run(**fields: Any) -> Run:
    """A queued run; fields of its request may be given too."""
    run = Run(
        run_id="run_1",
        accepted_no=1,
        tenant="default",
        session_key="agent:main:main",
        session_id="session-1",
        request=RunRequest(
            message="Hello",
            agent_id="main",
            lane="main",
            priority=Priority.FOREGROUND,
            model="scripted/hello",
            timeout_s=0,
        ),
        state=RunState.QUEUED,
        disposition=Disposition.STARTED,
        queue_position=0,
        accepted_at=ACCEPTED_AT,
    )
    of_request = {name: fields.pop(name) for name in list(fields) if not hasattr(run, name)}
    return replace(run, request=replace(run.request, **of_request), **fields)


def make_session(**fields: Any) -> Session:
    """A session without runs."""
    session = Session(
        tenant="default",
        session_key="agent:main:main",
        session_id="session-1",
        agent_id="main",
        created_at=ACCEPTED_AT,
        last_interaction_at=ACCEPTED_AT,
    )
    return replace(session, **fields)


def make_event(payload: EventPayload, *, seq: int, position: int | None = None, run: Run | None = None) -> StoredEvent:
    """The event as the store keeps it."""
    run = run or make_run()
    position = seq if position is None else position
    codec = WireEventCodec()
    encoded = codec.encode(
        payload,
        run_id=run.run_id,
        seq=seq,
        time=ACCEPTED_AT,
        session_key=run.session_key,
        agent_id=run.request.agent_id,
    )
    return StoredEvent(
        position=position,
        run_id=run.run_id,
        session_key=run.session_key,
        tenant=run.tenant,
        seq=seq,
        kind=kind_of(payload),
        is_last=is_terminal(payload),
        encoded=codec.with_cursor(encoded, store_id=STORE_ID, position=position),
    )
