"""How a run ends in the store: its row, its result, what its session has used, and the messages that it took in."""

from dataclasses import replace

from lanewayd.events import Lifecycle, NewEvent, StoredEvent
from lanewayd.messages import Usage
from lanewayd.records import Run, RunState, check_transition
from lanewayd.store.commands.event_log import RunHead, add_events, growth_parameters, run_head
from lanewayd.store.interface import RunEnd
from lanewayd.store.run_rows import error_json, payloads_json, run_from_row, usage_json
from lanewayd.store.times import to_us
from lanewayd.store.transaction import Transaction


def write_end(transaction: Transaction, head: RunHead, end: RunEnd, row: dict[str, object]) -> None:
    """`row`: how the log and the progress of the run end. Its terminal event is stored already."""
    check_transition(RunState(head.state), end.state)
    transaction.execute(
        "update_run_ended",
        {
            **row,
            "state": end.state.value,
            "ended_at": to_us(end.ended_at),
            "stop_reason": end.stop_reason,
            "truncated": end.truncated,
        },
    )
    transaction.execute(
        "update_run_result",
        {
            "error_json": error_json(end.error),
            "payloads_json": payloads_json(end.payloads),
            "usage_json": usage_json(end.usage),
            "output_json": end.output_json,
            "accepted_no": head.accepted_no,
        },
    )
    if end.usage is not None or end.context_tokens is not None:
        _add_usage(transaction, head, end)


def _add_usage(transaction: Transaction, head: RunHead, end: RunEnd) -> None:
    """To what the session has used."""
    usage = end.usage or Usage()
    transaction.execute(
        "add_usage",
        {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "unavailable": usage.unavailable,
            "cost_usd": usage.cost_usd,
            "lacks_prices": usage.lacks_prices,
            "context_tokens": end.context_tokens,
            "tenant": head.tenant,
            "session_key": head.session_key,
            "session_id": head.session_id,
        },
    )


def settle_merged(
    transaction: Transaction, host: RunHead, end: RunEnd, terminal: NewEvent
) -> tuple[tuple[Run, ...], tuple[StoredEvent, ...]]:
    """End the messages that `host` took in as it ends, each with a terminal event in its own log (D-7).

    What the host has used is counted there only.
    """
    runs: list[Run] = []
    events: list[StoredEvent] = []
    for member in transaction.all("select_merged", (host.run_id,)):
        head = run_head(transaction, member["run_id"])
        if head is None:
            continue
        growth = add_events(transaction, head, (_as_of_member(terminal),))
        row = {"used_s": None, "open_message_id": None, "got_on": False, "handed_over": False}
        write_end(
            transaction,
            head,
            replace(end, usage=None, context_tokens=None),
            {**row, **growth_parameters(growth), "accepted_no": head.accepted_no},
        )
        runs.append(run_from_row(transaction.one("select_run_by_no", (head.accepted_no,))))
        events.extend(growth.events)
    return tuple(runs), tuple(events)


def _as_of_member(terminal: NewEvent) -> NewEvent:
    if not isinstance(terminal.payload, Lifecycle):
        raise TypeError("a run ends with a terminal event")
    return replace(terminal, payload=replace(terminal.payload, started_at=None, usage=None, attempt=0))
