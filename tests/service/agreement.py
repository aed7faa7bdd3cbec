"""One check for every outcome: Wait, GetRun, ListRuns and the log agree about a run (CONTRACT, Outcomes)."""

from dataclasses import dataclass

from tests.fakes.service import RunningService

from laneway.v1 import agent_pb2, event_pb2, run_pb2

END = event_pb2.LIFECYCLE_PHASE_END
ERROR = event_pb2.LIFECYCLE_PHASE_ERROR


@dataclass(frozen=True)
class Expected:
    """A row of the table of outcomes, with what this run said and used."""

    state: run_pb2.RunState
    stop_reason: str
    reason: str = ""
    """`RunError.reason`; empty = no error."""
    payloads: tuple[str, ...] = ()
    """The texts of the result but for the one of an error."""
    truncated: bool = False
    was_started: bool = True
    used_tokens: tuple[int, int] | None = None
    """Input and output tokens; None = not looked at."""
    is_log_whole: bool = True
    """False: the session was deleted, and only the terminal event is left."""


@dataclass(frozen=True)
class Reading:
    """An ended run through all four ways."""

    waited: agent_pb2.WaitResponse
    run: run_pb2.Run
    events: list[event_pb2.Event]

    @property
    def terminal(self) -> event_pb2.LifecycleEvent:
        """The last event's lifecycle."""
        return self.events[-1].lifecycle

    def of_kind(self, kind: str) -> list[event_pb2.Event]:
        """The events of one arm."""
        return [event for event in self.events if event.WhichOneof("payload") == kind]

    def phases(self, phase: event_pb2.LifecyclePhase) -> list[event_pb2.LifecycleEvent]:
        """The lifecycle events of one phase."""
        return [event.lifecycle for event in self.of_kind("lifecycle") if event.lifecycle.phase == phase]


_ENDS = {
    run_pb2.RUN_STATE_SUCCEEDED: (agent_pb2.WAIT_STATUS_OK, agent_pb2.TIMEOUT_KIND_UNSPECIFIED, END),
    run_pb2.RUN_STATE_FAILED: (agent_pb2.WAIT_STATUS_ERROR, agent_pb2.TIMEOUT_KIND_UNSPECIFIED, ERROR),
    run_pb2.RUN_STATE_CANCELLED: (agent_pb2.WAIT_STATUS_TIMEOUT, agent_pb2.TIMEOUT_KIND_CANCELLED, END),
    run_pb2.RUN_STATE_TIMED_OUT: (agent_pb2.WAIT_STATUS_TIMEOUT, agent_pb2.TIMEOUT_KIND_RUN_DEADLINE, ERROR),
}


async def runs_of(service: RunningService, session_key: str) -> list[run_pb2.Run]:
    """All runs of a session, newest first."""
    request = agent_pb2.ListRunsRequest(session_key=session_key, page_size=500)
    return list((await service.agent.ListRuns(request)).runs)


async def get_run(service: RunningService, run_id: str) -> run_pb2.Run:
    """`GetRun`."""
    return await service.agent.GetRun(agent_pb2.GetRunRequest(run_id=run_id))


async def read_ended(service: RunningService, run_id: str) -> Reading:
    """Wait for the end and read the run through every way; checks that they agree."""
    waited = await service.wait(run_id)
    run = await get_run(service, run_id)
    assert [each for each in await runs_of(service, run.session_key) if each.run_id == run_id] == [run]
    assert await service.wait(run_id, 0) == waited
    subscription = service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, verbose=agent_pb2.VERBOSITY_FULL))
    snapshot, *events = [event async for event in subscription]
    assert (snapshot.seq, snapshot.snapshot.run) == (0, run)
    assert (snapshot.snapshot.first_seq, snapshot.snapshot.last_seq) == (events[0].seq, run.last_seq)
    assert await service.events(run_id, after_seq=run.last_seq) == []
    reading = Reading(waited, run, events)
    _check_agreement(reading)
    return reading


async def check_outcome(service: RunningService, run_id: str, expected: Expected) -> Reading:
    """The run ends as `expected`, whichever way it is read."""
    reading = await read_ended(service, run_id)
    waited, run, terminal = reading.waited, reading.run, reading.terminal
    assert run.state == expected.state
    assert run.stop_reason == expected.stop_reason
    assert run.error.reason == expected.reason
    assert run.truncated == expected.truncated
    assert run.HasField("started_at") == expected.was_started
    assert [payload.text for payload in waited.payloads if not payload.is_error] == list(expected.payloads)
    if expected.used_tokens is not None:
        assert (run.usage.input_tokens, run.usage.output_tokens) == expected.used_tokens
    if expected.is_log_whole:
        assert reading.events[0].seq == 1
        assert bool(terminal.error.message) == bool(expected.reason)
        _check_payloads(reading)
    else:
        assert reading.events == reading.events[-1:]
        assert not terminal.error.message
    return reading


def _check_agreement(reading: Reading) -> None:
    waited, run, events, terminal = reading.waited, reading.run, reading.events, reading.terminal
    assert [event.seq for event in events] == list(range(events[0].seq, run.last_seq + 1))
    assert {(event.run_id, event.session_key, event.agent_id) for event in events} == {
        (run.run_id, run.session_key, run.agent_id)
    }
    assert len({event.cursor for event in events}) == len(events)
    terminals = [event.seq for event in events if event.lifecycle.phase in (END, ERROR)]
    assert terminals == [run.last_seq], "one terminal event, and it is the last"
    assert (waited.status, waited.timeout_kind, terminal.phase) == _ENDS[run.state]
    for field in ("state", "stop_reason", "started_at", "ended_at", "error", "usage"):
        assert getattr(waited, field) == getattr(run, field) == getattr(terminal, field), field
        if field not in ("state", "stop_reason"):
            assert waited.HasField(field) == run.HasField(field) == terminal.HasField(field), field
    assert events[-1].time == run.ended_at
    assert terminal.attempt == run.attempt
    assert run.HasField("ended_at")
    assert waited.accepted_at == run.accepted_at
    assert list(waited.payloads) == list(run.payloads)
    assert waited.truncated == run.truncated
    assert waited.run_id == run.run_id
    assert not waited.error_pending
    assert terminal.cancelled == (run.state == run_pb2.RUN_STATE_CANCELLED)
    has_error = run.state in (run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_TIMED_OUT)
    assert has_error == run.HasField("error")
    assert waited.merged_into_run_id == run.merged_into_run_id == ""
    starts = reading.phases(event_pb2.LIFECYCLE_PHASE_START)
    if events[0].seq == 1:
        assert [start.started_at for start in starts] == ([run.started_at] if run.HasField("started_at") else [])


def _check_payloads(reading: Reading) -> None:
    """The result is the text of the last `message` event of the model; a failed run says behind it what failed."""
    run = reading.run
    spoken = [event.message.text for event in reading.of_kind("message") if event.message.role == "assistant"]
    said = [payload.text for payload in run.payloads if not payload.is_error]
    assert said == [text for text in spoken[-1:] if text]
    failures = [payload.text for payload in run.payloads if payload.is_error]
    assert failures == ([run.error.message] if run.state == run_pb2.RUN_STATE_FAILED else [])
    if failures:
        assert run.payloads[-1].is_error
