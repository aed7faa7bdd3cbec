"""What the user says in a run: a message's words, and how log and transcript hold them."""

from datetime import datetime

from lanewayd.events import MessageEnded
from lanewayd.messages import UserMessage, cut_utf8, valid_text
from lanewayd.records import EntryKind, NewEntry, Run
from lanewayd.runs.ids import Ids
from lanewayd.runs.outcome import MAX_TEXT_BYTES
from lanewayd.transcript.entries import user_body


def words_of(run: Run) -> UserMessage:
    """The message that the run was accepted with."""
    return UserMessage(valid_text(run.request.message), run.request.attachments)


def said(words: UserMessage, ids: Ids, now: datetime) -> tuple[NewEntry, MessageEnded]:
    """The entry of these words, and the event that shows it."""
    entry = NewEntry(ids.entry(), now, EntryKind.USER, user_body(words))
    cut = cut_utf8(words.text, MAX_TEXT_BYTES)
    shown = MessageEnded(
        ids.message(), "user", entry.entry_id, cut.text, truncated=cut.truncated, total_bytes=cut.total_bytes
    )
    return entry, shown
