"""What outsiders can see of a run, read through every way there is, and the rules that hold for any run.

`observe` reads Wait, GetRun, ListRuns, the log and the transcript of an ended run and checks that they agree;
`check_conversation` checks a request as a strict model service would.
"""

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fakes.model_server import ModelServer, RecordedRequest
from tests.fakes.service import RunningService

from laneway.v1 import admin_pb2, agent_pb2, event_pb2, run_pb2, session_pb2
from lanewayd.runs.lanes import LaneBook

_TERMINAL = (event_pb2.LIFECYCLE_PHASE_END, event_pb2.LIFECYCLE_PHASE_ERROR)
_WAIT_STATUS = {
    run_pb2.RUN_STATE_SUCCEEDED: (agent_pb2.WAIT_STATUS_OK, agent_pb2.TIMEOUT_KIND_UNSPECIFIED),
    run_pb2.RUN_STATE_FAILED: (agent_pb2.WAIT_STATUS_ERROR, agent_pb2.TIMEOUT_KIND_UNSPECIFIED),
    run_pb2.RUN_STATE_CANCELLED: (agent_pb2.WAIT_STATUS_TIMEOUT, agent_pb2.TIMEOUT_KIND_CANCELLED),
    run_pb2.RUN_STATE_TIMED_OUT: (agent_pb2.WAIT_STATUS_TIMEOUT, agent_pb2.TIMEOUT_KIND_RUN_DEADLINE),
}


@dataclass(frozen=True, slots=True)
class Observed:
    """An ended run as outsiders see it. `entries` are the run's part of its session's transcript."""

    waited: agent_pb2.WaitResponse
    run: run_pb2.Run
    events: list[event_pb2.Event]
    entries: list[session_pb2.Entry]

    @property
    def terminal(self) -> event_pb2.LifecycleEvent:
        """The terminal event."""
        return self.events[-1].lifecycle

    @property
    def text(self) -> str:
        """All visible text that was streamed and not voided, in order."""
        return "".join(event.assistant.delta for event in self._valid("assistant"))

    @property
    def reasoning(self) -> str:
        """All reasoning that was streamed and not voided, in order."""
        return "".join(event.reasoning.delta for event in self._valid("reasoning"))

    @property
    def payloads(self) -> list[str]:
        """The texts of the result."""
        return [payload.text for payload in self.waited.payloads]

    def of_kind(self, kind: str) -> list[event_pb2.Event]:
        """The events of one arm."""
        return [event for event in self.events if event.WhichOneof("payload") == kind]

    def tools(self, phase: event_pb2.ToolPhase) -> list[event_pb2.ToolEvent]:
        """The tool events of one phase."""
        return [event.tool for event in self.of_kind("tool") if event.tool.phase == phase]

    @property
    def tool_results(self) -> list[session_pb2.ToolResultEntry]:
        """The tool results in the transcript."""
        return [entry.tool_result for entry in self.entries if entry.WhichOneof("body") == "tool_result"]

    @property
    def answers(self) -> list[session_pb2.AssistantEntry]:
        """The assistant messages in the transcript."""
        return [entry.assistant for entry in self.entries if entry.WhichOneof("body") == "assistant"]

    @property
    def calls(self) -> list[session_pb2.ToolCall]:
        """The tool calls in the transcript."""
        return [block.tool_call for answer in self.answers for block in answer.content if block.HasField("tool_call")]

    def _valid(self, kind: str) -> list[event_pb2.Event]:
        void = {event.lifecycle.void_message_id for event in self.of_kind("lifecycle")} - {""}
        return [event for event in self.of_kind(kind) if getattr(event, kind).message_id not in void]


async def entries_of(service: RunningService, session_key: str) -> list[session_pb2.Entry]:
    """The whole transcript of a session, oldest first."""
    entries: list[session_pb2.Entry] = []
    token = ""
    while True:
        page = await service.sessions.ListEntries(
            session_pb2.ListEntriesRequest(session_key=session_key, page_size=100, page_token=token)
        )
        entries += page.entries
        token = page.next_page_token
        if not token:
            return entries


async def whole_text(service: RunningService, session_key: str, entry_id: str, part: int = 0) -> str:
    """One block of an entry, read in pieces."""
    text, offset = "", 0
    while True:
        piece = await service.sessions.ReadEntry(
            session_pb2.ReadEntryRequest(session_key=session_key, entry_id=entry_id, part=part, offset=offset)
        )
        text += piece.text
        offset = piece.next_offset
        if offset >= piece.total_bytes:
            return text


async def observe(service: RunningService, run_id: str, *, wait_s: float = 30.0) -> Observed:
    """The run when it has ended; checks that Wait, GetRun, ListRuns, the log and the transcript agree."""
    waited = await service.wait(run_id, wait_s)
    run = await service.agent.GetRun(agent_pb2.GetRunRequest(run_id=run_id))
    listed = await service.agent.ListRuns(agent_pb2.ListRunsRequest(session_key=run.session_key, page_size=500))
    assert [each for each in listed.runs if each.run_id == run_id] == [run]
    events = await service.events(run_id)
    entries = [entry for entry in await entries_of(service, run.session_key) if entry.run_id == run_id]
    observed = Observed(waited, run, events, entries)
    check_agreement(observed)
    check_transcript(entries)
    return observed


def check_agreement(observed: Observed) -> None:
    """One terminal event, last; it, Wait and GetRun say the same."""
    waited, run, events = observed.waited, observed.run, observed.events
    assert [event.seq for event in events] == list(range(run.last_seq - len(events) + 1, run.last_seq + 1))
    phases = [event.lifecycle.phase for event in events if event.WhichOneof("payload") == "lifecycle"]
    assert sum(phase in _TERMINAL for phase in phases) == 1
    terminal = observed.terminal
    assert terminal.phase in _TERMINAL
    for field in ("state", "stop_reason", "started_at", "ended_at", "error", "usage"):
        assert getattr(waited, field) == getattr(run, field) == getattr(terminal, field), field
    assert list(waited.payloads) == list(run.payloads)
    assert waited.truncated == run.truncated
    assert (waited.status, waited.timeout_kind) == _WAIT_STATUS[run.state]
    assert terminal.cancelled == (run.state == run_pb2.RUN_STATE_CANCELLED)
    is_error = run.state in (run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_TIMED_OUT)
    assert (terminal.phase == event_pb2.LIFECYCLE_PHASE_ERROR) == is_error == waited.HasField("error")
    assert not waited.error_pending
    _check_streams(observed)


def _check_streams(observed: Observed) -> None:
    """Deltas join without gap to what the message event holds; each call has one start and one result."""
    streamed: dict[tuple[str, str, int], bytes] = {}
    for event in observed.events:
        kind = event.WhichOneof("payload")
        if kind in ("assistant", "reasoning"):
            part = getattr(event, kind)
            key = (kind, part.message_id, part.content_index)
            assert part.delta
            assert len(streamed.setdefault(key, b"")) == part.offset
            streamed[key] += part.delta.encode()
    for event in observed.of_kind("message"):
        if event.message.role == "assistant" and not event.message.truncated:
            pieces = [
                text
                for (kind, message_id, _), text in sorted(streamed.items())
                if kind == "assistant" and message_id == event.message.message_id
            ]
            assert b"".join(pieces).decode() == event.message.text
    started = [tool.call_id for tool in observed.tools(event_pb2.TOOL_PHASE_START)]
    ended = [tool.call_id for tool in observed.tools(event_pb2.TOOL_PHASE_RESULT)]
    assert len(set(started)) == len(started)
    assert sorted(started) == sorted(ended)
    assert all(tool.name and tool.call_id for tool in observed.tools(event_pb2.TOOL_PHASE_START))


def check_transcript(entries: Sequence[session_pb2.Entry]) -> None:
    """Each call has arguments that are one JSON object, and exactly one result, in the order of the calls behind it."""
    expected: list[str] = []
    for entry in entries:
        body = entry.WhichOneof("body")
        if body == "tool_result":
            assert expected, "a result without a call"
            assert entry.tool_result.call_id == expected.pop(0)
            continue
        assert not expected, "a call without a result"
        if body == "assistant":
            calls = [block.tool_call for block in entry.assistant.content if block.HasField("tool_call")]
            assert all(isinstance(strict_json(call.arguments_json), dict) for call in calls)
            expected = [call.call_id for call in calls]
            assert len(set(expected)) == len(expected)
    assert not expected, "a call without a result"


def strict_json(text: str | bytes) -> Any:
    """Parsed as strict services do: UTF-8, no NaN, no lone surrogates."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    value = json.loads(text.decode("utf-8") if isinstance(text, bytes) else text, parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def check_conversation(request: RecordedRequest) -> list[dict[str, Any]]:
    """The messages of a request, after the checks of a strict service: each call has one result right behind it."""
    messages: list[dict[str, Any]] = strict_json(request.body)["messages"]
    expected: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == expected.pop(0)
            assert isinstance(message["content"], str)
            assert message["content"]
            continue
        assert not expected, "a call without a result"
        for call in message.get("tool_calls", ()):
            assert call["id"]
            assert call["function"]["name"]
            assert isinstance(call["function"]["arguments"], str)
            assert isinstance(strict_json(call["function"]["arguments"]), dict)
            expected.append(call["id"])
        assert message.get("content") or message.get("tool_calls")
    assert not expected, "a call without a result"
    return messages


def check_conversations(model: ModelServer) -> None:
    """All requests that a model service got."""
    for request in model.requests:
        check_conversation(request)


def calls_sent(request: RecordedRequest) -> list[tuple[str, dict[str, Any]]]:
    """(id, arguments) of the calls in the last assistant message of a request."""
    last = [message for message in check_conversation(request) if message["role"] == "assistant"][-1]
    return [(call["id"], json.loads(call["function"]["arguments"])) for call in last.get("tool_calls", ())]


def results_sent(request: RecordedRequest) -> list[tuple[str, str]]:
    """(call id, content) of all tool results in a request."""
    messages = check_conversation(request)
    return [(message["tool_call_id"], message["content"]) for message in messages if message["role"] == "tool"]


def book_of(service: RunningService) -> LaneBook:
    """The lanes from the inside, for what a caller cannot see: that nothing is left behind."""
    return service.service.runs.scheduler.book


async def unwound(service: RunningService) -> None:
    """Return when nothing of a run is at work any more; its terminal event may be read a moment before."""
    await service.service.runs.scheduler.idle()


async def check_idle(service: RunningService) -> None:
    """No run is active or queued, in the status and in the book, and no lock file is left."""
    await unwound(service)
    status = await service.admin.GetStatus(admin_pb2.GetStatusRequest())
    assert all(lane.active == lane.queued == 0 for lane in status.lanes)
    assert book_of(service).is_empty
    assert len(service.service.parts.watches) == 0
    assert lock_files(service) == []
    assert tasks_of_runs() == []


def tasks_of_runs() -> list[str]:
    """Names of the tasks that work for runs; those of gRPC and of the model service are none."""
    names = [task.get_name() for task in asyncio.all_tasks()]
    return sorted(name for name in names if name.startswith(("supervise ", "run ", "log ", "tool ")))


def lock_files(service: RunningService) -> list[str]:
    """Names of the session locks that lie around."""
    return sorted(path.name for path in (service.home / "locks").iterdir())


def texts(messages: Iterable[dict[str, Any]]) -> list[tuple[str, Any]]:
    """(role, content) of the messages of a request."""
    return [(message["role"], message["content"]) for message in messages]
