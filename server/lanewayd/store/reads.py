"""What is asked of the database, each within one snapshot."""

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from lanewayd.events import StoredEvent
from lanewayd.records import Entry, Run, RunState, Session, SessionFilter, ToolCallRow
from lanewayd.store.event_rows import event_from_row
from lanewayd.store.interface import EventPage, RunFilter, Waiting
from lanewayd.store.reader import Snapshot
from lanewayd.store.run_rows import run_from_row, to_json
from lanewayd.store.session_rows import Dropped, dropped_from_json, entry_from_row, session_from_row, tool_call_from_row
from lanewayd.store.times import to_us
from lanewayd.store.transaction import Row

_ABOVE_ALL = 2**63 - 1


def run(snapshot: Snapshot, tenant: str, run_id: str) -> Run | None:
    """One run of the tenant."""
    row = snapshot.one("select_run_of_tenant", (run_id, tenant))
    return _with_present_places(snapshot, [run_from_row(row)])[0] if row else None


def runs(snapshot: Snapshot, tenant: str, which: RunFilter, before_no: int | None, limit: int) -> list[Run]:
    """Newest first."""
    rows = snapshot.all(
        "select_runs_of_session" if which.session_key else "select_runs",
        {
            "tenant": tenant,
            "session_key": which.session_key,
            "before_no": _ABOVE_ALL if before_no is None else before_no,
            "agent_id": which.agent_id,
            "label": which.label,
            "states": to_json([state.value for state in which.states]),
            "limit": limit,
        },
    )
    return _with_present_places(snapshot, [run_from_row(row) for row in rows])


def _with_present_places(snapshot: Snapshot, found: list[Run]) -> list[Run]:
    """The runs, each queued one with the number of those that wait before it now."""
    waiting: dict[tuple[str, str], list[int]] = {}
    placed = []
    for each in found:
        if each.state is RunState.QUEUED:
            session = (each.tenant, each.session_key)
            if session not in waiting:
                waiting[session] = [row["accepted_no"] for row in snapshot.all("select_queued_of_session", session)]
            placed.append(replace(each, queue_position=bisect_left(waiting[session], each.accepted_no)))
        else:
            placed.append(each)
    return placed


def waiting_behind(snapshot: Snapshot, run: Run, limit: int) -> Waiting:
    """See Store.waiting_behind."""
    session = (run.tenant, run.session_key)
    rows = snapshot.all("select_queued_behind", (*session, run.accepted_no, limit))
    note = snapshot.one("select_dropped", session)
    dropped = dropped_from_json(note["dropped_json"]) if note is not None else Dropped()
    found = (snapshot.one("select_run_of_tenant", (run_id, run.tenant)) for run_id in dropped.run_ids)
    return Waiting(
        tuple(map(run_from_row, rows)), tuple(run_from_row(row) for row in found if row is not None), dropped.count
    )


def blobs_of(snapshot: Snapshot, tenant: str, hashes: Collection[str]) -> frozenset[str]:
    """Those that a run or a forked session of the tenant names."""
    names = {"tenant": tenant, "hashes": to_json(list(hashes))}
    return frozenset(row["value"] for row in snapshot.all("select_hashes_of_tenant", names))


def unended_runs(snapshot: Snapshot) -> list[Run]:
    """Oldest first, of all tenants."""
    return [run_from_row(row) for row in snapshot.all("select_unended")]


def tool_calls(snapshot: Snapshot, run_id: str) -> list[ToolCallRow]:
    """In request order."""
    return [tool_call_from_row(row) for row in snapshot.all("select_tool_calls", (run_id,))]


def session(snapshot: Snapshot, tenant: str, session_key: str) -> Session | None:
    """One session of the tenant."""
    row = snapshot.one("select_session", (tenant, session_key))
    return session_from_row(row) if row else None


def session_key_of(snapshot: Snapshot, tenant: str, session_id: str) -> str | None:
    """The key that owns a session id of the tenant."""
    row = snapshot.one("select_session_by_id", (session_id, tenant))
    return str(row["session_key"]) if row else None


def sessions(
    snapshot: Snapshot, tenant: str, which: SessionFilter, before: tuple[datetime, str] | None, limit: int
) -> list[Session]:
    """Newest interaction first, then by key."""
    before_at, before_key = (to_us(before[0]), before[1]) if before else (_ABOVE_ALL, "")
    place = {"before_at": before_at, "before_key": before_key, "limit": limit}
    names = {"tenant": tenant, **place, "archived": which.archived, "pinned": which.pinned}
    return [session_from_row(row) for row in snapshot.all("select_sessions", names)]


def context(snapshot: Snapshot, session_id: str) -> list[Entry]:
    """From the last reset or the root to the leaf."""
    return [entry_from_row(row) for row in snapshot.all("select_context", (session_id,))]


def entries(snapshot: Snapshot, tenant: str, session_key: str, after_no: int, limit: int) -> list[tuple[int, Entry]]:
    """Oldest first, with their numbers."""
    rows = snapshot.all("select_entries", (tenant, session_key, after_no, limit))
    return [(row["entry_no"], entry_from_row(row)) for row in rows]


def entry(snapshot: Snapshot, tenant: str, session_key: str, entry_id: str) -> Entry | None:
    """An entry of this session."""
    row = snapshot.one("select_entry", (tenant, session_key, entry_id))
    return entry_from_row(row) if row else None


def run_events(snapshot: Snapshot, tenant: str, run_id: str, after_seq: int, limit: int) -> EventPage | None:
    """The run's log above `after_seq`."""
    log = snapshot.one("select_run_log", (run_id, tenant))
    if log is None:
        return None
    rows = snapshot.all("select_run_events", (log["accepted_no"], after_seq, limit))
    return EventPage(
        tuple(map(event_from_row, rows)),
        log["first_seq"],
        log["last_seq"],
        position=last_position(snapshot),
        has_ended=bool(log["has_ended"]),
    )


def session_events(snapshot: Snapshot, tenant: str, session_key: str, after: int, limit: int) -> EventPage:
    """The session's events above a position: the logs of its runs, merged."""
    names = {"tenant": tenant, "session_key": session_key, "after": after}
    events: list[StoredEvent] = []
    for log in snapshot.all("select_session_logs", names):
        if len(events) == limit and log["first_position"] > events[-1].position:
            break
        rows = snapshot.all("select_run_events", (log["accepted_no"], _last_seq_up_to(snapshot, log, after), limit))
        events = sorted([*events, *map(event_from_row, rows)], key=lambda event: event.position)[:limit]
    pruned = snapshot.one("select_session_pruned", names)[0]
    latest = last_position(snapshot)
    return EventPage(tuple(events), pruned + 1, latest, position=latest)


def _last_seq_up_to(snapshot: Snapshot, log: Row, position: int) -> int:
    """The highest seq of a run whose event stands at `position` or before: found by halving, both orders are one."""
    if log["first_position"] > position:
        return int(log["first_seq"]) - 1
    below, above = int(log["first_seq"]) - 1, int(log["last_seq"])
    while above - below > 1:
        middle = (below + above) // 2
        if snapshot.one("select_event_position", (log["accepted_no"], middle))["position"] <= position:
            below = middle
        else:
            above = middle
    return below


def all_events(snapshot: Snapshot, tenant: str, after: int, limit: int) -> EventPage:
    """The tenant's events above a position."""
    pruned = snapshot.one("select_tenant_pruned", (tenant,))[0]
    rows = snapshot.all("select_tenant_events", (tenant, after, limit))
    latest = last_position(snapshot)
    return EventPage(tuple(map(event_from_row, rows)), pruned + 1, latest, position=latest)


def session_start_position(snapshot: Snapshot, tenant: str, session_key: str) -> int:
    """The position before the first event a new reader of the session is to see."""
    run_to_follow = snapshot.one("select_first_run_to_follow", {"tenant": tenant, "session_key": session_key})
    if run_to_follow is None:
        return 0
    if run_to_follow["first_seq"] > run_to_follow["last_seq"]:
        # Nothing of it is stored: all is gone, or all is still to come.
        return run_to_follow["pruned_position"] or last_position(snapshot)
    row = snapshot.one("select_event_position", (run_to_follow["accepted_no"], run_to_follow["first_seq"]))
    return int(row["position"]) - 1


def last_position(snapshot: Snapshot) -> int:
    """The highest position that was given."""
    return int(snapshot.one("select_last_position")[0])


def count_sessions(snapshot: Snapshot) -> int:
    """Of all tenants."""
    return int(snapshot.one("count_sessions")[0])


def count_runs_by_state(snapshot: Snapshot) -> dict[RunState, int]:
    """Of all tenants; states without runs are left out."""
    return {RunState(row["state"]): row["runs"] for row in snapshot.all("count_runs_by_state")}


def credential_health(snapshot: Snapshot) -> list[tuple[str, str, str]]:
    """Provider, profile, state of all credentials."""
    return [tuple(row) for row in snapshot.all("select_credential_health")]


def credential_pin(snapshot: Snapshot, session_id: str, provider: str) -> str:
    """The profile that the session stays with; "" = none."""
    row = snapshot.one("select_credential_pin", (session_id, provider))
    return str(row["profile"]) if row else ""
