"""Stores as a killed process leaves them: a run in each state that D-2 names."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tests.fakes.store_codec import JsonCodec
from tests.fakes.store_commands import NOW, SESSION, TENANT, a_request, accept_run, append_to, start_run
from tests.unit.runs.bench_agents import MODEL

from lanewayd.events import AssistantDelta, MessageEnded, NewEvent
from lanewayd.messages import AssistantMessage, ToolOutcome, ToolResultMessage, Usage, UserMessage
from lanewayd.records import EntryKind, NewEntry, QueueMode, QueueRules, ToolCallRow, ToolCallState
from lanewayd.store.interface import RequestAbort, RunChange, StartRun
from lanewayd.store.sqlite import SqliteStore
from lanewayd.transcript.entries import assistant_body, tool_result_body, user_body


class LeftOver:
    """Writes what a process had committed before it died; `close` is its death."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self._entries = 0

    @classmethod
    async def open(cls, home: Path) -> "LeftOver":
        home.mkdir(exist_ok=True)
        return cls(await SqliteStore.open(home / "laneway.db", codec=JsonCodec()))

    async def accept(self, run_id: str, session_key: str = SESSION, *, timeout_s: float = 0.0) -> None:
        """The message `hi`."""
        request = a_request(message="hi", model=MODEL, timeout_s=timeout_s, lane="main")
        await self.store.accept(accept_run(run_id, session_key, request=request))

    async def accept_as(self, run_id: str, mode: QueueMode) -> None:
        """The message `hi` in a queue mode; every run can take it in."""
        request = a_request(message="hi", model=MODEL, timeout_s=0.0, lane="main", queue_mode=mode.value)
        rules = QueueRules(can_join=lambda _host, _message: True)
        await self.store.accept(accept_run(run_id, request=request, queue=rules))

    async def start(self, run_id: str, session_key: str = SESSION, *, timeout_s: float = 0.0) -> None:
        """Accepted and started: the user turn is in the transcript."""
        await self.accept(run_id, session_key, timeout_s=timeout_s)
        user = self._entry(EntryKind.USER, user_body(UserMessage("hi")))
        await self.store.start(start_run(run_id, entries=(user,)))

    async def dispatch_again(self, run_id: str) -> None:
        """A later process has dispatched the run, and died as well."""
        await self.store.start(StartRun(run_id, NOW, recovered=True))

    async def change(self, run_id: str, *changes: RunChange) -> None:
        run = await self.store.run(TENANT, run_id)
        assert run is not None
        await self.store.append(append_to(run_id, run.last_seq + 1, *changes, claim=run.claim))

    async def says(self, run_id: str, text: str, message_id: str) -> None:
        """Text of a message that has not ended."""
        delta = NewEvent(NOW, AssistantDelta(message_id, 0, 0, text))
        await self.change(run_id, RunChange(events=(delta,), open_message_id=message_id))

    async def message(self, run_id: str, message: AssistantMessage) -> list[ToolCallRow]:
        """An assistant message has ended; its calls are REQUESTED."""
        entry = self._entry(EntryKind.ASSISTANT, assistant_body(message, "msg_1"))
        rows = [
            ToolCallRow(
                run_id, call.call_id, entry.entry_id, index, call.name, call.arguments_json, ToolCallState.REQUESTED
            )
            for index, call in enumerate(message.tool_calls)
        ]
        ended = NewEvent(NOW, MessageEnded("msg_1", "assistant", entry.entry_id, message.text))
        await self.change(run_id, RunChange(events=(ended,), entries=(entry,), tool_calls=tuple(rows), got_on=not rows))
        return rows

    async def launched(self, *rows: ToolCallRow) -> None:
        changed = tuple(replace(row, state=ToolCallState.LAUNCHED) for row in rows)
        await self.change(rows[0].run_id, RunChange(tool_calls=changed))

    async def finished(self, row: ToolCallRow, text: str) -> None:
        done = replace(row, state=ToolCallState.FINISHED, result_text=text, outcome=ToolOutcome.OK)
        await self.change(row.run_id, RunChange(tool_calls=(done,)))

    async def settled(self, run_id: str, results: Sequence[ToolResultMessage]) -> None:
        """The results are in the transcript."""
        entries = tuple(self._entry(EntryKind.TOOL_RESULT, tool_result_body(result)) for result in results)
        await self.change(run_id, RunChange(entries=entries))

    async def void_usage(self, run_id: str, usage: Usage) -> None:
        """Calls that failed and were tried again used this."""
        await self.change(run_id, RunChange(void_usage=usage))

    async def used(self, run_id: str, used_s: float) -> None:
        await self.change(run_id, RunChange(used_s=used_s))

    async def abort_asked(self, run_id: str) -> None:
        await self.store.request_abort(RequestAbort(TENANT, NOW, stop_reason="stop_word", run_id=run_id))

    async def close(self) -> None:
        await self.store.close()

    def _entry(self, kind: EntryKind, body_json: str) -> NewEntry:
        self._entries += 1
        return NewEntry(f"left_{self._entries}", NOW, kind, body_json)


Leave = Callable[[LeftOver], Awaitable[None]]


async def left_by(home: Path, leave: Leave) -> None:
    """Let a process do what `leave` says and die."""
    left = await LeftOver.open(home)
    await leave(left)
    await left.close()
