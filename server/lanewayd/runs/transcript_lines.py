"""A stored transcript as the lines of an export."""

import json
from collections.abc import AsyncGenerator

from lanewayd.records import Entry, Session
from lanewayd.store.interface import Store
from lanewayd.transcript.export import ExportIds, export_end, export_header, export_line

PAGE_ENTRIES = 200


async def transcript_lines(store: Store, session: Session, workspace: str) -> AsyncGenerator[str, None]:
    """One JSON line after the other, without line ends, read in pages. `workspace`: that of the session's agent."""
    yield _line(export_header(session, workspace))
    ids, after_no, count = ExportIds(), 0, 0
    last: Entry | None = None
    has_more = True
    while has_more:
        page = await store.transcript(session.session_id, after_no=after_no, limit=PAGE_ENTRIES)
        for number, entry in page:
            after_no, last, count = number, entry, count + 1
            yield _line(export_line(entry, ids))
        has_more = len(page) == PAGE_ENTRIES
    yield _line(export_end(last, count, session, ids))


def _line(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
