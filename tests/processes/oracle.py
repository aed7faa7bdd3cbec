"""What must be true of runs after kills, told by everybody but the server's own record alone: what observers saw, what
the model sent, what the tools did, and what Wait, GetRun and the transcript say now."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.server_process import ServerProcess
from tests.processes.kill_model import KillModel, last_said
from tests.processes.ledger_tools import LedgerLine, read_ledger
from tests.processes.observers import Sightings, is_terminal

from laneway.v1 import agent_pb2, event_pb2, run_pb2, session_pb2


@dataclass
class Oracle:
    """Collects violations; an empty list is the proof."""

    server: ServerProcess
    model: KillModel
    sightings: Sightings
    violations: list[str] = field(default_factory=list)

    async def check_run(self, run_id: str, message: str) -> agent_pb2.WaitResponse:
        """The log of a run that must have ended, and what the calls say of it."""
        log = self.sightings.log(run_id)
        self._check_order(run_id, log)
        waited = await self.server.wait(run_id)
        if waited.state in (run_pb2.RUN_STATE_QUEUED, run_pb2.RUN_STATE_RUNNING):
            self._say(run_id, f"has not ended: {waited}")
            return waited
        if log and is_terminal(log[-1]):
            self._check_calls(
                run_id, log, waited, await self.server.agent.GetRun(agent_pb2.GetRunRequest(run_id=run_id))
            )
        self._check_text(run_id, message, log)
        if waited.error.reason == "RECOVERY_EXHAUSTED":
            self._say(run_id, "was given up, though it did no harm")
        return waited

    def check_said(self, entries: Iterable[session_pb2.Entry], states: Mapping[str, "run_pb2.RunState"]) -> None:
        """Each message of `states`, given with the state of its run, stands once in the transcript; one whose run was
        cancelled at most once."""
        said = Counter(
            line
            for entry in entries
            if entry.WhichOneof("body") == "user"
            for part in entry.user.content
            for line in part.text.splitlines()
        )
        for message, state in states.items():
            is_well = said[message] == 1 or (said[message] == 0 and state == run_pb2.RUN_STATE_CANCELLED)
            if not is_well:
                self._say(message, f"was said {said[message]} times, its run is {run_pb2.RunState.Name(state)}")

    def check_ledger(self, entries: Iterable[session_pb2.Entry], ledger: Path) -> Counter[str]:
        """Effects outside against the transcript; how many results there were of each outcome."""
        entries = list(entries)
        lines = read_ledger(ledger)
        self._check_alone(lines)
        tools = self.model.tokens_of_tool
        effects = Counter(line.token for line in lines if line.what == "effect")
        for token, count in effects.items():
            if count > 1 and tools[token] == "ledger":
                self._say(token, f"had its effect {count} times")
        calls = {
            part.tool_call.call_id: json.loads(part.tool_call.arguments_json)["token"]
            for entry in entries
            for part in entry.assistant.content
            if part.WhichOneof("block") == "tool_call"
        }
        for token in effects.keys() - set(calls.values()):
            self._say(token, "had an effect, but is not in the transcript")
        outcomes: Counter[str] = Counter()
        results = Counter(entry.tool_result.call_id for entry in entries if entry.WhichOneof("body") == "tool_result")
        for call_id in calls:
            if results[call_id] != 1:
                self._say(call_id, f"has {results[call_id]} results")
        for entry in entries:
            if entry.WhichOneof("body") != "tool_result":
                continue
            result = entry.tool_result
            token = calls[result.call_id]
            outcomes[event_pb2.ToolOutcome.Name(result.outcome)] += 1
            if result.outcome == event_pb2.TOOL_OUTCOME_OK and not effects[token]:
                self._say(token, "has the result OK without an effect")
            if result.outcome == event_pb2.TOOL_OUTCOME_ERROR:
                self._say(token, f"failed: {result}")
        unaccounted = effects.keys() - {
            calls[entry.tool_result.call_id]
            for entry in entries
            if entry.WhichOneof("body") == "tool_result" and entry.tool_result.outcome != event_pb2.TOOL_OUTCOME_ERROR
        }
        for token in unaccounted:
            self._say(token, "had an effect, but no result tells of it")
        return outcomes

    # --- inside ------------------------------------------------------------------------------------------------------

    def _say(self, what: str, text: str) -> None:
        self.violations.append(f"{what} {text}")

    def _check_order(self, run_id: str, log: Sequence[event_pb2.Event]) -> None:
        if [event.seq for event in log] != list(range(1, len(log) + 1)):
            self._say(run_id, f"has gaps: {[event.seq for event in log]}")
        terminals = [event.seq for event in log if is_terminal(event)]
        if len(terminals) != 1 or terminals[0] != log[-1].seq:
            self._say(run_id, f"has the terminal events {terminals} of {len(log)}")
        starts = [event for event in log if event.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_START]
        if len(starts) > 1:
            self._say(run_id, "has several START events")

    def _check_calls(
        self,
        run_id: str,
        log: Sequence[event_pb2.Event],
        waited: agent_pb2.WaitResponse,
        run: run_pb2.Run,
    ) -> None:
        """Wait and GetRun say what the terminal event and the last message say."""
        end = log[-1].lifecycle
        said = (end.state, end.stop_reason, end.started_at, end.ended_at, end.usage, end.error)
        for name, answer in (("Wait", waited), ("GetRun", run)):
            told = (answer.state, answer.stop_reason, answer.started_at, answer.ended_at, answer.usage, answer.error)
            if told != said:
                self._say(run_id, f"ended as {said}, but {name} says {told}")
        if [payload.SerializeToString() for payload in waited.payloads] != [
            payload.SerializeToString() for payload in run.payloads
        ]:
            self._say(run_id, "has other payloads in GetRun than in Wait")
        if run.merged_into_run_id:
            log_of_answer: Sequence[event_pb2.Event] = self.sightings.log(run.merged_into_run_id)
        else:
            log_of_answer = log
        messages = [
            event.message.text for event in log_of_answer if event.message.role == "assistant" and event.message.text
        ]
        if waited.state == run_pb2.RUN_STATE_SUCCEEDED and [p.text for p in waited.payloads] != messages[-1:]:
            self._say(run_id, f"has the payloads {waited.payloads}, but said {messages}")
        if run.last_seq != len(log):
            self._say(run_id, f"has last_seq {run.last_seq} and {len(log)} events")

    def _check_text(self, run_id: str, message: str, log: Sequence[event_pb2.Event]) -> None:
        """After voiding, the deltas are what the model sent in the last try, byte for byte."""
        texts: dict[str, str] = {}
        void: set[str] = set()
        ended: list[tuple[str, int, str, str]] = []
        """Message, number of the answer to it, message id, text."""
        answers = 0
        for event in log:
            kind = event.WhichOneof("payload")
            if kind == "assistant":
                piece = event.assistant
                so_far = texts.get(piece.message_id, "")
                if piece.offset != len(so_far.encode()):
                    self._say(run_id, f"has a piece at {piece.offset} after {len(so_far.encode())} bytes")
                texts[piece.message_id] = so_far + piece.delta
            elif kind == "lifecycle" and event.lifecycle.void_message_id:
                void.add(event.lifecycle.void_message_id)
            elif kind == "message" and event.message.role == "user":
                message, answers = last_said(event.message.text), 0
            elif kind == "message" and event.message.role == "assistant":
                ended.append((message, answers, event.message.message_id, event.message.text))
                answers += 1
        ended_ids = {message_id for _, _, message_id, _ in ended}
        if ended_ids & void or texts.keys() - ended_ids - void:
            self._say(run_id, f"ended {ended_ids}, voided {void}, showed {set(texts)}")
        is_cancelled = bool(log) and log[-1].lifecycle.cancelled
        for number, (asked, turn, message_id, text) in enumerate(ended, start=1):
            sent = self.model.sent[asked, turn][-1].text if self.model.sent[asked, turn] else None
            is_cut = is_cancelled and number == len(ended)
            is_right = sent is not None and (sent.startswith(text) if is_cut else sent == text)
            if not is_right or texts.get(message_id, "") != text:
                self._say(run_id, f"turn {turn}: sent {sent!r}, streamed {texts.get(message_id)!r}, said {text!r}")

    def _check_alone(self, lines: Sequence[LedgerLine]) -> None:
        """One run at a time per session, as the tools saw it."""
        self.violations.extend(self.model.overlaps)
        open_calls: dict[tuple[int, str], Counter[str]] = {}
        for line in lines:
            runs = open_calls.setdefault((line.pid, line.session_key), Counter())
            if line.what == "begin":
                others = {run_id for run_id, count in runs.items() if count > 0} - {line.run_id}
                if others:
                    self._say(line.run_id, f"ran a tool while {others} did")
                runs[line.run_id] += 1
            elif line.what == "end":
                runs[line.run_id] -= 1
