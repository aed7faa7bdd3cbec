"""What the start of a run writes down: the event that says so and, the first time, the user's message."""

from datetime import datetime

from lanewayd.events import Lifecycle, LifecyclePhase, MessageEnded, NewEvent
from lanewayd.messages import UserMessage, cut_utf8, valid_text
from lanewayd.records import EntryKind, NewEntry, Run, RunRequest, RunState
from lanewayd.runs.ids import Ids
from lanewayd.runs.outcome import MAX_TEXT_BYTES
from lanewayd.store.interface import StartRun
from lanewayd.transcript.entries import user_body


def first_start(run_id: str, request: RunRequest, *, ids: Ids, now: datetime) -> StartRun:
    """Start a run whose message is in no transcript yet."""
    provider, _, model = request.model.partition("/")
    start = Lifecycle(LifecyclePhase.START, RunState.RUNNING.value, started_at=now, provider=provider, model=model)
    text = valid_text(request.message)
    entry = NewEntry(ids.entry(), now, EntryKind.USER, user_body(UserMessage(text)))
    cut = cut_utf8(text, MAX_TEXT_BYTES)
    said = MessageEnded(
        ids.message(), "user", entry.entry_id, cut.text, truncated=cut.truncated, total_bytes=cut.total_bytes
    )
    return StartRun(run_id, now, recovered=False, entries=(entry,), events=(NewEvent(now, start), NewEvent(now, said)))


def recovered_start(run: Run, *, now: datetime) -> StartRun:
    """Go on with a run that another process left: what was shown of an open message is void (D-3)."""
    recovered = Lifecycle(LifecyclePhase.RECOVERED, RunState.RUNNING.value, void_message_id=run.open_message_id)
    return StartRun(run.run_id, now, recovered=True, events=(NewEvent(now, recovered),))
