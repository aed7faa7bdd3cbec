"""AgentService over a real channel: what arrives at the service, what comes back."""

from datetime import timedelta
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from tests.fakes.rpc_rows import ACCEPTED_AT, make_event, make_run
from tests.fakes.rpc_service import FakeAnswer, FakeListing
from tests.rpc.harness import Harness, refused

from laneway.v1 import agent_pb2, event_pb2, run_pb2
from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.events import AssistantDelta, Lifecycle, LifecyclePhase, ToolPhase, ToolProgress
from lanewayd.messages import Payload
from lanewayd.records import RunState
from lanewayd.rpc.limits import MAX_MESSAGE_BYTES
from lanewayd.rpc.status import STATUS_CODES
from lanewayd.runs.interface import AbortReceipt, WaitOutcome

_TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_agent_answers_with_what_the_service_has_made_durable(harness: Harness, agent: Any) -> None:
    harness.runs.answer = FakeAnswer(disposition="queued", queue_position=2, duplicate=True)
    answer = await agent.Agent(agent_pb2.AgentRequest(message="Hello", label="x"))
    assert (answer.run_id, answer.session_key, answer.session_id) == ("run_1", "agent:main:main", "session-1")
    assert (answer.agent_id, answer.disposition) == ("main", run_pb2.DISPOSITION_QUEUED)
    assert (answer.queue_position, answer.duplicate) == (2, True)
    assert answer.accepted_at.ToDatetime(tzinfo=ACCEPTED_AT.tzinfo) == ACCEPTED_AT
    [message] = harness.runs.accepted
    assert (message.tenant, message.message, message.label, message.traceparent) == ("tenant-a", "Hello", "x", "")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (_TRACEPARENT, True),
        (_TRACEPARENT.replace("00-", "ff-"), False),
        ("00-" + "0" * 32 + "-b7ad6b7169203331-01", False),
        (_TRACEPARENT.upper(), False),
        (_TRACEPARENT + "-more", False),
        ("x", False),
    ],
)
async def test_a_traceparent_is_passed_on_only_when_it_is_valid(
    harness: Harness, agent: Any, sent: str, kept: bool
) -> None:
    await agent.Agent(agent_pb2.AgentRequest(message="Hello"), metadata=(("traceparent", sent),))
    assert harness.runs.accepted[0].traceparent == (sent if kept else "")


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (agent_pb2.AgentRequest(), ("INVALID_ARGUMENT", "MESSAGE_EMPTY", "message")),
        (agent_pb2.AgentRequest(message="x" * 1_048_577), ("INVALID_ARGUMENT", "MESSAGE_TOO_LONG", "message")),
        (
            agent_pb2.AgentRequest(message="x", session_key="\n"),
            ("INVALID_ARGUMENT", "SESSION_KEY_MALFORMED", "session_key"),
        ),
        (
            agent_pb2.AgentRequest(message="x", idempotency_key="k" * 129),
            ("INVALID_ARGUMENT", "IDEMPOTENCY_KEY_MALFORMED", "idempotency_key"),
        ),
        (
            agent_pb2.AgentRequest(message="x", timeout=Duration(seconds=-1)),
            ("INVALID_ARGUMENT", "TIMEOUT_INVALID", "timeout"),
        ),
        (agent_pb2.AgentRequest.FromString(b"\x0a\x01x\x58\x09"), ("INVALID_ARGUMENT", "ENUM_UNKNOWN", "priority")),
        (agent_pb2.AgentRequest(message="x", max_turns=0), ("INVALID_ARGUMENT", "FIELD_INVALID", "max_turns")),
        (agent_pb2.AgentRequest(message="x", deliver=True), ("UNIMPLEMENTED", "NOT_AVAILABLE_YET", "deliver")),
    ],
)
@pytest.mark.parametrize("method", ["Agent", "RunAgent"])
async def test_a_request_that_is_refused_names_its_field_and_reaches_nobody(
    harness: Harness, agent: Any, method: str, request_: agent_pb2.AgentRequest, expected: tuple[str, str, str]
) -> None:
    code, reason, field = expected
    refusal = await refused(getattr(agent, method)(request_))
    assert (refusal.code.name, refusal.reason, refusal.metadata) == (code, reason, {"field": field})
    assert refusal.fields == ([field] if code == "INVALID_ARGUMENT" else [])
    assert harness.runs.accepted == []
    assert harness.logs.asked == []


@pytest.mark.parametrize("encoded", [b"\x0a\x01\xff", b"\x0a\x05ab", b"\xff\xff\xff", b"\x0a\x02\xc3\x28"])
@pytest.mark.parametrize("method", ["Agent", "RunAgent", "Subscribe", "Wait"])
async def test_bytes_that_are_no_request_are_malformed(channel: grpc.aio.Channel, method: str, encoded: bytes) -> None:
    path = f"/laneway.v1.AgentService/{method}"
    is_stream = method in ("RunAgent", "Subscribe")
    send: Any = channel.unary_stream(path) if is_stream else channel.unary_unary(path)
    refusal = await refused(send(encoded))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_MESSAGE")
    assert refusal.fields == [""]


@pytest.mark.parametrize("code", list(STATUS_CODES))
async def test_what_the_service_refuses_arrives_with_status_and_reason(
    harness: Harness, agent: Any, code: ErrorCode
) -> None:
    harness.runs.error = LanewayError(code, "No, because.", metadata={"run_id": "run_9"}, retry_after_s=3.0)
    refusal = await refused(agent.Agent(agent_pb2.AgentRequest(message="x")))
    assert (refusal.code, refusal.reason, refusal.text) == (STATUS_CODES[code], code.value, "No, because.")
    assert refusal.metadata == {"run_id": "run_9"}
    is_retryable = STATUS_CODES[code] in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert refusal.retry_after_s == (3.0 if is_retryable else None)


@pytest.mark.parametrize("quoted", ["ü" * 51_200, "%" * 40_000 + "\n" * 100, "a\udc80\0" * 10_000, "x" * 10_000_000])
async def test_b079_a_long_text_keeps_its_status(harness: Harness, agent: Any, quoted: str) -> None:
    metadata = {"field": "model", "holder": quoted}
    harness.runs.error = LanewayError(ErrorCode.MODEL_UNKNOWN, f"There is no model {quoted}", metadata=metadata)
    refusal = await refused(agent.Agent(agent_pb2.AgentRequest(message="x")))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "MODEL_UNKNOWN")
    assert refusal.text.startswith("There is no model ")
    assert refusal.text.endswith("...")
    assert len(refusal.text.encode()) <= 1000


async def test_a_bug_is_internal_with_a_neutral_text_and_one_log_line_without_what_the_user_said(
    harness: Harness, agent: Any, caplog: pytest.LogCaptureFixture
) -> None:
    cause = KeyError("secret cause")
    harness.runs.error = ValueError("secret prompt")
    harness.runs.error.__cause__ = cause
    refusal = await refused(agent.Agent(agent_pb2.AgentRequest(message="secret prompt")))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    assert "secret" not in refusal.text
    assert "/" not in refusal.text
    [record] = [record for record in caplog.records if record.name.startswith("lanewayd")]
    logged = str(record.__dict__)
    assert record.__dict__["rpc_method"] == "laneway.v1.AgentService.Agent"
    assert record.__dict__["error_type"] == "ValueError"
    assert "in _fail" in record.__dict__["error_trace"]
    assert "KeyError" in record.__dict__["error_trace"]
    assert "secret" not in logged


async def test_wait_waits_as_long_as_it_is_asked_to(harness: Harness, agent: Any) -> None:
    for request in (
        agent_pb2.WaitRequest(run_id="run_1"),
        agent_pb2.WaitRequest(run_id="run_1", timeout=Duration()),
        agent_pb2.WaitRequest(run_id="run_1", timeout=Duration(seconds=90_000)),
    ):
        answer = await agent.Wait(request)
        assert (answer.status, answer.timeout_kind) == (
            agent_pb2.WAIT_STATUS_TIMEOUT,
            agent_pb2.TIMEOUT_KIND_WAIT_EXPIRED,
        )
    assert [asked for asked in harness.runs.asked if asked[0] == "wait"] == [
        ("wait", "tenant-a", "run_1", 30.0),
        ("wait", "tenant-a", "run_1", 0.0),
        ("wait", "tenant-a", "run_1", 3600.0),
    ]


@pytest.mark.parametrize("deadline_s", [4.0, 20.0])
async def test_wait_ends_before_the_callers_deadline(harness: Harness, agent: Any, deadline_s: float) -> None:
    request = agent_pb2.WaitRequest(run_id="run_1", timeout=Duration(seconds=int(deadline_s)))
    await agent.Wait(request, timeout=deadline_s)
    [timeout_s] = [asked[3] for asked in harness.runs.asked if asked[0] == "wait"]
    assert deadline_s * 0.9 < timeout_s < deadline_s * 0.97


async def test_wait_tells_the_end_of_a_run(harness: Harness, agent: Any) -> None:
    harness.runs.stored = [make_run(state=RunState.SUCCEEDED, payloads=(Payload("ü" * 3_000_000),))]
    harness.runs.wait_outcome = WaitOutcome.ENDED
    answer = await agent.Wait(agent_pb2.WaitRequest(run_id="run_1"))
    assert answer.status == agent_pb2.WAIT_STATUS_OK
    assert (answer.payloads[0].truncated, answer.payloads[0].total_bytes) == (True, 6_000_000)
    assert answer.ByteSize() <= MAX_MESSAGE_BYTES


@pytest.mark.parametrize(
    ("request_", "reason", "field"),
    [
        (agent_pb2.WaitRequest(), "FIELD_INVALID", "run_id"),
        (agent_pb2.WaitRequest(run_id="r", timeout=Duration(seconds=-1)), "TIMEOUT_INVALID", "timeout"),
        (agent_pb2.WaitRequest(run_id="r", timeout=Duration(seconds=2**62)), "TIMEOUT_INVALID", "timeout"),
    ],
)
async def test_a_wait_that_is_refused(agent: Any, request_: agent_pb2.WaitRequest, reason: str, field: str) -> None:
    refusal = await refused(agent.Wait(request_))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, reason)
    assert refusal.fields == [field]


async def test_a_run_that_nobody_knows_is_not_found(agent: Any) -> None:
    for call in (agent.Wait(agent_pb2.WaitRequest(run_id="x")), agent.GetRun(agent_pb2.GetRunRequest(run_id="x"))):
        refusal = await refused(call)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND")
        assert refusal.metadata == {"run_id": "x"}


async def test_abort_names_its_target_and_answers_with_the_receipt(harness: Harness, agent: Any) -> None:
    harness.runs.receipt = AbortReceipt(("a",), ("b",), ("c",))
    answer = await agent.Abort(agent_pb2.AbortRequest(run_id="run_1", reason="ü" * 256))
    assert (list(answer.aborted_run_ids), list(answer.cancelled_run_ids)) == (["a"], ["b"])
    assert list(answer.pending_run_ids) == ["c"]
    await agent.Abort(agent_pb2.AbortRequest(session_key="Key", clear_queued=True))
    assert harness.runs.asked == [
        ("abort_run", "tenant-a", "run_1", "rpc", "ü" * 256),
        ("abort_session", "tenant-a", "Key", True, "rpc", ""),
    ]


@pytest.mark.parametrize(
    ("request_", "reason", "field"),
    [
        (agent_pb2.AbortRequest(), "FIELD_INVALID", "run_id"),
        (agent_pb2.AbortRequest(run_id=""), "FIELD_INVALID", "run_id"),
        (agent_pb2.AbortRequest(session_key=""), "FIELD_INVALID", "session_key"),
        (agent_pb2.AbortRequest(session_key="x" * 513), "SESSION_KEY_MALFORMED", "session_key"),
        (agent_pb2.AbortRequest(run_id="run_1", reason="ü" * 257), "FIELD_INVALID", "reason"),
    ],
)
async def test_an_abort_that_is_refused(
    harness: Harness, agent: Any, request_: agent_pb2.AbortRequest, reason: str, field: str
) -> None:
    refusal = await refused(agent.Abort(request_))
    assert (refusal.reason, refusal.fields) == (reason, [field])
    assert harness.runs.asked == []


async def test_get_run_answers_with_the_run(harness: Harness, agent: Any) -> None:
    harness.runs.stored = [make_run(state=RunState.RUNNING, started_at=ACCEPTED_AT + timedelta(seconds=1))]
    run = await agent.GetRun(agent_pb2.GetRunRequest(run_id="run_1"))
    assert (run.run_id, run.state, run.model) == ("run_1", run_pb2.RUN_STATE_RUNNING, "scripted/hello")
    assert (await refused(agent.GetRun(agent_pb2.GetRunRequest()))).fields == ["run_id"]


async def test_list_runs_pages_through_all_runs_newest_first(harness: Harness, agent: Any) -> None:
    harness.runs.stored = [make_run(run_id=f"run_{number}", accepted_no=number) for number in range(1, 8)]
    seen: list[str] = []
    token = ""
    while True:
        page = await agent.ListRuns(agent_pb2.ListRunsRequest(label="l", page_size=3, page_token=token))
        seen += [run.run_id for run in page.runs]
        token = page.next_page_token
        if not token:
            break
    assert seen == [f"run_{number}" for number in range(7, 0, -1)]


async def test_list_runs_passes_its_filters_on(harness: Harness, agent: Any) -> None:
    states = [run_pb2.RUN_STATE_QUEUED, run_pb2.RUN_STATE_TIMED_OUT]
    await agent.ListRuns(agent_pb2.ListRunsRequest(session_key="k", states=states, agent_id="a", label="l"))
    assert harness.runs.asked == [("runs", "tenant-a", "k", (RunState.QUEUED, RunState.TIMED_OUT), "a", "l")]


async def test_a_page_of_large_runs_stays_below_1_mib(harness: Harness, agent: Any) -> None:
    harness.runs.stored = [
        make_run(run_id=f"run_{number}", accepted_no=number, payloads=(Payload("x" * 400_000),))
        for number in range(1, 6)
    ]
    page = await agent.ListRuns(agent_pb2.ListRunsRequest())
    assert [run.run_id for run in page.runs] == ["run_5", "run_4"]
    assert page.next_page_token
    assert page.ByteSize() <= MAX_MESSAGE_BYTES


async def test_a_list_of_runs_that_is_refused(harness: Harness, agent: Any) -> None:
    harness.runs.stored = [make_run(run_id=f"run_{number}", accepted_no=number) for number in range(1, 4)]
    token = (await agent.ListRuns(agent_pb2.ListRunsRequest(page_size=1))).next_page_token
    for request, reason, field in (
        (agent_pb2.ListRunsRequest(page_size=-1), "FIELD_INVALID", "page_size"),
        (agent_pb2.ListRunsRequest(page_token="x"), "PAGE_TOKEN_INVALID", "page_token"),
        (agent_pb2.ListRunsRequest(page_token=token, label="other"), "PAGE_TOKEN_INVALID", "page_token"),
        (agent_pb2.ListRunsRequest(states=["RUN_STATE_UNSPECIFIED"]), "ENUM_UNKNOWN", "states"),
        (agent_pb2.ListRunsRequest.FromString(b"\x10\x4d"), "ENUM_UNKNOWN", "states"),
        (agent_pb2.ListRunsRequest(session_key="\0"), "SESSION_KEY_MALFORMED", "session_key"),
    ):
        refusal = await refused(agent.ListRuns(request))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, reason)
        assert refusal.fields == [field]
    assert (await refused(agent.ListTools(agent_pb2.ListToolsRequest(page_token=token)))).reason == "PAGE_TOKEN_INVALID"


async def test_agents_models_and_tools_are_listed_by_name(harness: Harness, agent: Any) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    harness.admin.listings = (
        FakeListing(agent_id="b", model="z/m", tools=("exec",), name="write", description="Writes.", schema=schema),
        FakeListing(agent_id="a", model="y/m", name="exec", context_window=1000, available=False),
    )
    agents = await agent.ListAgents(agent_pb2.ListAgentsRequest())
    assert [(item.agent_id, item.model, list(item.tools)) for item in agents.agents] == [
        ("a", "y/m", []),
        ("b", "z/m", ["exec"]),
    ]
    models = await agent.ListModels(agent_pb2.ListModelsRequest())
    assert [(item.model, item.api, item.context_window, item.available) for item in models.models] == [
        ("y/m", "openai_chat", 1000, False),
        ("z/m", "openai_chat", 0, True),
    ]
    first = await agent.ListTools(agent_pb2.ListToolsRequest(page_size=1))
    assert [(item.name, item.HasField("schema"), item.source) for item in first.tools] == [("exec", False, "builtin")]
    second = await agent.ListTools(agent_pb2.ListToolsRequest(page_size=1, page_token=first.next_page_token))
    assert (second.tools[0].name, second.tools[0].description, second.next_page_token) == ("write", "Writes.", "")
    assert second.tools[0].schema["properties"]["path"]["type"] == "string"


async def test_run_agent_begins_with_accepted_and_ends_after_the_terminal_event(harness: Harness, agent: Any) -> None:
    harness.runs.answer = FakeAnswer(duplicate=True)
    stored = [
        make_event(Lifecycle(LifecyclePhase.START, "running"), seq=1),
        make_event(ToolProgress(ToolPhase.RESULT, "c", "t", result=Payload("hidden")), seq=2),
        make_event(AssistantDelta("m", 0, 0, "Hi"), seq=3),
        make_event(Lifecycle(LifecyclePhase.END, "succeeded"), seq=4),
    ]
    harness.logs.put(*stored, None)
    events = [event async for event in agent.RunAgent(agent_pb2.AgentRequest(message="Hello"))]
    assert [event.seq for event in events] == [0, 1, 2, 3, 4]
    assert events[0].accepted == await agent.Agent(agent_pb2.AgentRequest(message="Hello"))
    assert (events[0].run_id, events[0].session_key, events[0].agent_id) == ("run_1", "agent:main:main", "main")
    assert not events[2].tool.HasField("result")
    assert events[3] == event_pb2.Event.FromString(stored[2].encoded)
    assert harness.logs.asked == [("run", "tenant-a", "run_1", 0)]


async def test_a_caller_of_run_agent_that_goes_away_aborts_nothing(harness: Harness, agent: Any) -> None:
    call = agent.RunAgent(agent_pb2.AgentRequest(message="Hello"))
    assert (await call.read()).WhichOneof("payload") == "accepted"
    await harness.logs.opened.wait()
    call.cancel()
    await harness.logs.closed.wait()
    assert harness.logs.open_count == 0
    assert len(harness.runs.accepted) == 1
    assert harness.runs.asked == []
