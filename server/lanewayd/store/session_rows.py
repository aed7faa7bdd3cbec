"""Sessions, transcript entries and tool calls from and to their rows. Pure."""

import json
from dataclasses import asdict, dataclass, fields

from lanewayd.messages import ToolOutcome, Usage
from lanewayd.records import Entry, EntryKind, RunState, Session, SessionSettings, ToolCallRow, ToolCallState
from lanewayd.store.run_rows import to_json
from lanewayd.store.times import from_us
from lanewayd.store.transaction import Row


def session_from_row(row: Row) -> Session:
    """A row of the session queries, which add the figures of the session's runs."""
    return Session(
        tenant=row["tenant"],
        session_key=row["session_key"],
        session_id=row["session_id"],
        agent_id=row["agent_id"],
        created_at=from_us(row["created_at"]),
        last_interaction_at=from_us(row["last_interaction_at"]),
        label=row["label"],
        leaf_entry_id=row["leaf_entry_id"],
        active_run_id=row["active_run_id"],
        queued_runs=row["queued_runs"],
        last_run_id=row["last_run_id"],
        last_state=RunState(row["last_state"]) if row["last_state"] else None,
        usage=session_usage_of(row),
        context_tokens=row["context_tokens"],
        settings=settings_from_json(row["settings_json"]),
        pinned=bool(row["pinned"]),
        archived=bool(row["archived"]),
        parent_session_key=row["parent_session_key"],
    )


_SETTING_NAMES = frozenset(setting.name for setting in fields(SessionSettings))


def settings_from_json(text: str) -> SessionSettings:
    """The column `settings_json`; "" = nothing is set. What this version does not know is passed over."""
    if not text:
        return SessionSettings()
    return SessionSettings(**{name: value for name, value in json.loads(text).items() if name in _SETTING_NAMES})


def settings_json(settings: SessionSettings) -> str:
    """The column `settings_json`: what is set, in a fixed order; "" when nothing is."""
    said = {name: value for name, value in asdict(settings).items() if value not in ("", None)}
    return to_json(said) if said else ""


@dataclass(frozen=True, slots=True)
class Dropped:
    """What the cap of the queue has dropped of a session and no turn was told of: how many, and the last ones."""

    count: int = 0
    run_ids: tuple[str, ...] = ()


def dropped_from_json(text: str) -> Dropped:
    """The column `dropped_json`."""
    if not text:
        return Dropped()
    fields_of = json.loads(text)
    return Dropped(fields_of["count"], tuple(fields_of["run_ids"]))


def dropped_json(dropped: Dropped) -> str:
    """The column `dropped_json`."""
    return to_json(asdict(dropped)) if dropped.count else ""


def session_usage_of(row: Row) -> Usage:
    """The sums of a session's runs that have ended."""
    return Usage(
        row["input_tokens"],
        row["output_tokens"],
        row["cache_read_tokens"],
        row["cache_write_tokens"],
        row["reasoning_tokens"],
        bool(row["usage_unavailable"]),
        row["cost_usd"],
        bool(row["lacks_prices"]) and row["cost_usd"] is not None,
    )


def entry_from_row(row: Row) -> Entry:
    """A row of the table `entries`."""
    return Entry(
        entry_id=row["entry_id"],
        parent_entry_id=row["parent_entry_id"],
        session_id=row["session_id"],
        run_id=row["run_id"],
        time=from_us(row["written_at"]),
        kind=EntryKind(row["kind"]),
        body_json=row["body_json"],
    )


def tool_call_from_row(row: Row) -> ToolCallRow:
    """A row of the table `tool_calls`."""
    return ToolCallRow(
        run_id=row["run_id"],
        call_id=row["call_id"],
        entry_id=row["entry_id"],
        call_index=row["call_index"],
        name=row["name"],
        arguments_json=row["arguments_json"],
        state=ToolCallState(row["state"]),
        result_text=row["result_text"],
        is_error=bool(row["is_error"]),
        outcome=ToolOutcome(row["outcome"]) if row["outcome"] else None,
    )


def tool_call_parameters(call: ToolCallRow) -> dict[str, object]:
    """The columns of a tool call."""
    return {
        "run_id": call.run_id,
        "call_id": call.call_id,
        "entry_id": call.entry_id,
        "call_index": call.call_index,
        "name": call.name,
        "arguments_json": call.arguments_json,
        "state": call.state.value,
        "result_text": call.result_text,
        "is_error": call.is_error,
        "outcome": call.outcome.value if call.outcome else "",
    }
