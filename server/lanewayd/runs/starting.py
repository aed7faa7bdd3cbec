"""What a run brings into the store when it starts: its first event, and the user's words with it.

A run that is collected says the words of those that wait behind it too (D-7); who they are is read before, and checked
again in the transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lanewayd.events import EventPayload, Lifecycle, LifecyclePhase, NewEvent, QueueChange, QueuePhase
from lanewayd.messages import UserMessage, valid_text
from lanewayd.queueing.inbox import DroppedMessages, WaitingMessage, collectable, collected_prompt
from lanewayd.records import Disposition, EntryKind, NewEntry, QueueMode, Run, RunState
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.user_words import said, words_of
from lanewayd.store.interface import StartRun
from lanewayd.transcript.entries import reset_body

MOST_COLLECTED = 100
"""Messages of one turn."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The command that starts a run, and what its user says; None = the transcript holds it."""

    command: StartRun
    said: UserMessage | None = None


async def opening_of(run: Run, collaborators: Collaborators) -> Opening:
    """Of a run that was queued. Raises StoreUnavailable."""
    if run.request.queue_mode != QueueMode.COLLECT:
        return _opening(run, collaborators, words_of(run))
    waiting = await collaborators.store.waiting_behind(run, MOST_COLLECTED - 1)
    members = waiting.runs[: collectable(run.request, [each.request for each in waiting.runs])]
    text = collected_prompt(
        [WaitingMessage(each.run_id, valid_text(each.request.message)) for each in (run, *members)],
        DroppedMessages(waiting.dropped_count, tuple(valid_text(each.request.message) for each in waiting.dropped)),
    )
    attachments = tuple(attachment for each in (run, *members) for attachment in each.request.attachments)
    return _opening(run, collaborators, UserMessage(text, attachments), members, waiting.dropped_count)


def opening_of_recovered(run: Run, collaborators: Collaborators) -> Opening:
    """Of a run that another process left at work."""
    now = collaborators.clock.now()
    recovered = Lifecycle(LifecyclePhase.RECOVERED, RunState.RUNNING.value, void_message_id=run.open_message_id)
    return Opening(StartRun(run.run_id, now, recovered=True, events=(NewEvent(now, recovered),)))


def _opening(
    run: Run,
    collaborators: Collaborators,
    words: UserMessage,
    members: Sequence[Run] = (),
    dropped_count: int | None = None,
) -> Opening:
    now = collaborators.clock.now()
    provider, _, model = run.request.model.partition("/")
    start = Lifecycle(LifecyclePhase.START, RunState.RUNNING.value, started_at=now, provider=provider, model=model)
    entry, message = said(words, collaborators.ids, now)
    reset = NewEntry(collaborators.ids.entry(), now, EntryKind.RESET, reset_body())
    collected = QueueChange(QueuePhase.COLLECTED, host_run_id=run.run_id)
    left_the_queue = () if run.disposition is Disposition.STARTED else (QueueChange(QueuePhase.STARTED),)
    events: list[EventPayload] = [*left_the_queue, start, *(collected for _ in members), message]
    command = StartRun(
        run.run_id,
        now,
        recovered=False,
        entries=(reset, entry) if run.request.begins_anew else (entry,),
        events=tuple(NewEvent(now, event) for event in events),
        collected=tuple(each.run_id for each in members),
        dropped_count=dropped_count,
    )
    return Opening(command, words)
