"""Faults of a model service through the whole service, with both transports: what callers are told, how often it was
tried, that the lane is free afterwards, and that the key is nowhere (spec 04, 5; TESTING, an error names the fault)."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_server import DONE, Answer, End, ModelServer, delta, event, failure, text_answer, wire
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import Expected, Reading, check_outcome

from laneway.v1 import admin_pb2, agent_pb2, event_pb2, run_pb2
from lanewayd.app import Seams

KEY = "sk-canary-0123456789abcdef"
SESSION = "faults"
OWN_SLEEPERS = 1
FAILED = run_pb2.RUN_STATE_FAILED
PARTIAL_CALL = delta(tool_calls=[{"index": 0, "id": "x", "function": {"name": "exec", "arguments": '{"command":"tou'}}])

MakeAnswer = Callable[[], Answer]


@dataclass(frozen=True)
class Fault:
    """What a model service does at every try, and what becomes of the run."""

    name: str
    answer: MakeAnswer
    reason: str
    http_status: int = 0
    retryable: bool = False
    delays_s: tuple[float, ...] = ()
    """The waits before the further tries; empty = there is one try only."""
    says: tuple[str, ...] = ()
    """Words of the error's text: what happened, and what to do."""
    text: str = ""
    """What the run had said at its end."""
    voids: bool = False
    """Each failed try had shown text, which is void."""


def said(message: str, **fields: Any) -> dict[str, Any]:
    """An error body, with a key in it as careless services send it back."""
    return {"error": {"message": f"{message} (key {KEY})", **fields}}


def _late_error() -> Answer:
    return Answer([delta(content="Half a "), event(error={"type": "overloaded_error", "message": "Overloaded"})])


BACKOFF = (1.0, 2.0, 4.0)
UNREACHABLE_ADVICE = ("cannot be reached", "base_url")
FAULTS = [
    Fault(
        "reset before the answer",
        lambda: Answer(sends_head=False, end=End.RESET),
        "PROVIDER_UNREACHABLE",
        0,
        True,
        BACKOFF,
        ("reset", *UNREACHABLE_ADVICE),
    ),
    Fault(
        "closed before the answer",
        lambda: Answer(sends_head=False, end=End.CLOSE),
        "PROVIDER_UNREACHABLE",
        0,
        True,
        BACKOFF,
        UNREACHABLE_ADVICE,
    ),
    Fault(
        "400",
        lambda: failure(400, said("messages: unknown role")),
        "PROVIDER_REQUEST_REJECTED",
        400,
        says=("rejected", "unknown role"),
    ),
    Fault(
        "400 too long",
        lambda: failure(400, said("maximum context length is 8192 tokens")),
        "CONTEXT_OVERFLOW",
        400,
        says=("context window", "new session"),
    ),
    Fault("401", lambda: failure(401, said("Incorrect API key")), "PROVIDER_AUTH", 401, says=("key", "api_key_file")),
    Fault(
        "402", lambda: failure(402, said("Insufficient credits")), "PROVIDER_BILLING", 402, says=("credit", "Top up")
    ),
    Fault(
        "404", lambda: failure(404, said("no such model")), "PROVIDER_MODEL_NOT_FOUND", 404, says=("Check the model",)
    ),
    Fault("408", lambda: failure(408), "PROVIDER_STALLED", 408, True, says=("in time", "timeout_seconds")),
    Fault("422", lambda: failure(422, said("field required")), "PROVIDER_REQUEST_REJECTED", 422, says=("rejected",)),
    Fault(
        "429 for a moment",
        lambda: failure(429, said("slow down"), {"retry-after": "2"}),
        "PROVIDER_RATE_LIMITED",
        429,
        True,
        (2.0, 2.0, 4.0),
        ("rate limit", "later"),
    ),
    Fault(
        "429 for a minute",
        lambda: failure(429, said("3 requests per minute")),
        "PROVIDER_RATE_LIMITED",
        429,
        True,
        BACKOFF,
    ),
    Fault(
        "429 for an hour",
        lambda: failure(429, said("slow down"), {"retry-after": "3600"}),
        "PROVIDER_RATE_LIMITED",
        429,
        True,
        says=("rate limit",),
    ),
    Fault("429 for today", lambda: failure(429, said("daily quota reached")), "PROVIDER_RATE_LIMITED", 429, True),
    Fault(
        "500",
        lambda: failure(500, b"<html>Oops</html>"),
        "PROVIDER_UNAVAILABLE",
        500,
        True,
        BACKOFF,
        ("failing", "Try again"),
    ),
    Fault(
        "503 with a wait",
        lambda: failure(503, said("maintenance"), {"retry-after": "60"}),
        "PROVIDER_UNAVAILABLE",
        503,
        True,
        (60.0, 60.0, 60.0),
    ),
    Fault("503 with a long wait", lambda: failure(503, None, {"retry-after": "61"}), "PROVIDER_UNAVAILABLE", 503, True),
    Fault("529", lambda: failure(529), "PROVIDER_UNAVAILABLE", 529, True, BACKOFF, ("overloaded",)),
    Fault(
        "200 with an error of an unknown kind",
        lambda: failure(200, {"detail": f"what is this {KEY}"}),
        "PROVIDER_BAD_RESPONSE",
        200,
        says=("error", "base_url"),
    ),
    Fault(
        "200 with an overload",
        lambda: failure(200, said("Overloaded", type="overloaded_error")),
        "PROVIDER_UNAVAILABLE",
        200,
        True,
        BACKOFF,
    ),
    Fault("200 with a bad key", lambda: failure(200, said("bad key", code=401)), "PROVIDER_AUTH", 200),
    Fault(
        "an overload after text", _late_error, "PROVIDER_UNAVAILABLE", 200, True, BACKOFF, text="Half a ", voids=True
    ),
    Fault(
        "cut before text",
        lambda: wire(b": hello\n\n", end=End.CUT),
        "PROVIDER_STREAM_CUT",
        200,
        True,
        BACKOFF,
        ("cut", "Try again"),
    ),
    Fault(
        "reset before text",
        lambda: wire(b": hello\n\n", end=End.RESET),
        "PROVIDER_STREAM_CUT",
        200,
        True,
        BACKOFF,
    ),
    Fault(
        "cut after text",
        lambda: wire(delta(content="Half a "), end=End.CUT),
        "PROVIDER_STREAM_CUT",
        200,
        True,
        text="Half a ",
        says=("cut",),
    ),
    Fault(
        "cut in the arguments of a call",
        lambda: wire(PARTIAL_CALL, end=End.CUT),
        "PROVIDER_STREAM_CUT",
        200,
        True,
        BACKOFF,
    ),
    Fault(
        "cut in the arguments of a call after text",
        lambda: wire(delta(content="I will ") + PARTIAL_CALL, end=End.CUT),
        "PROVIDER_STREAM_CUT",
        200,
        True,
        text="I will ",
    ),
    Fault(
        "a web page", lambda: wire("<html>Login</html>"), "PROVIDER_BAD_RESPONSE", 200, says=("web page", "base_url")
    ),
    Fault("garbage in an event", lambda: wire("data: {not json}\n\n"), "PROVIDER_BAD_RESPONSE", 200, says=("no JSON",)),
    Fault(
        "garbage after text",
        lambda: wire(delta(content="Half a ") + b"data: \x00\xff\n\n"),
        "PROVIDER_BAD_RESPONSE",
        200,
        text="Half a ",
    ),
    Fault(
        "no HTTP",
        lambda: Answer([b"220 smtp.example ESMTP\r\n\r\n"], sends_head=False, end=End.CLOSE),
        "PROVIDER_BAD_RESPONSE",
        says=("HTTP", "base_url"),
    ),
    Fault(
        "a refusal",
        lambda: Answer([delta(content="I "), delta("content_filter"), DONE]),
        "PROVIDER_REFUSED",
        200,
        text="I ",
        says=("declined", "Rephrase"),
    ),
]


@dataclass
class Stage:
    """A service with a provider `acme` that needs a key; its clock stands still."""

    service: RunningService
    model: ModelServer
    clock: FakeClock
    records: list[logging.LogRecord] = field(default_factory=list)

    async def accept(self, **fields: Any) -> str:
        """A message for the provider; its run."""
        return (await self.service.accept("hi", session_key=SESSION, model="acme/m1", **fields)).run_id

    async def in_backoff(self) -> None:
        """Return when the run waits for its next try."""
        await self.clock.wait_for_sleepers(OWN_SLEEPERS + 1)

    async def lane_is_free(self) -> None:
        """The session goes on with its next message, and nothing of the failed run is left."""
        self.model.answer(text_answer("fine again"))
        waited = await self.service.wait((await self.service.accept("and now", session_key=SESSION)).run_id)
        assert waited.status == agent_pb2.WAIT_STATUS_OK
        status = await self.service.admin.GetStatus(admin_pb2.GetStatusRequest())
        assert all(lane.active == lane.queued == 0 for lane in status.lanes)

    def key_is_nowhere(self, reading: Reading) -> None:
        """Neither whole nor its part that tells it: not in events, errors, logs or the store."""
        places = [str(reading.waited), str(reading.run), *map(str, reading.events)]
        places += [str(record.__dict__) for record in self.records]
        places += [path.read_bytes().decode("latin-1") for path in self.service.home.glob("laneway.db*")]
        assert not [place for place in places if "canary" in place]


@pytest.fixture(params=["aiohttp", "httpx"])
async def stage(
    request: pytest.FixtureRequest, tmp_path: Path, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> AsyncGenerator[Stage, None]:
    caplog.set_level(logging.DEBUG)
    async with service_with_provider(tmp_path, model, model.base_url, request.param) as stage:
        stage.records = caplog.records
        yield stage


@asynccontextmanager
async def service_with_provider(
    tmp_path: Path, model: ModelServer, base_url: str, transport: str
) -> AsyncGenerator[Stage, None]:
    """A service with the provider `acme` at `base_url`."""
    key_file, clock = tmp_path / "key", FakeClock()
    key_file.write_text(KEY + "\n")
    toml = (
        f'[models]\ntransport = "{transport}"\nfirst_event_timeout_seconds = 7\n'
        f'[models.providers.acme]\nbase_url = "{base_url}"\napi_key_file = "{key_file}"\ntimeout_seconds = 30\n'
    )
    async with running_service(tmp_path / "home", model=model, toml=toml, seams=Seams(clock=clock)) as service:
        yield Stage(service, model, clock)


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
async def test_a_fault_of_the_model_service_ends_as_promised(stage: Stage, fault: Fault) -> None:
    tries = len(fault.delays_s) + 1
    stage.model.answer(*(fault.answer() for _ in range(tries)))
    run_id = await stage.accept()
    for number, delay_s in enumerate(fault.delays_s, start=1):
        await stage.in_backoff()
        await _check_pending(stage, run_id, fault)
        assert len(stage.model.requests) == number
        await stage.clock.advance(delay_s * 0.99)
        assert stage.clock.sleeper_count == OWN_SLEEPERS + 1
        await stage.clock.advance(delay_s * 0.01)

    payloads = (fault.text,) if fault.text else ()
    reading = await check_outcome(stage.service, run_id, Expected(FAILED, "error", fault.reason, payloads))
    assert len(stage.model.requests) == tries
    assert {request.headers["authorization"] for request in stage.model.requests} == {f"Bearer {KEY}"}
    _check_error(reading.run.error, fault)
    _check_retries(reading, fault)
    stage.key_is_nowhere(reading)
    await stage.lane_is_free()


async def _check_pending(stage: Stage, run_id: str, fault: Fault) -> None:
    """During the back-off a wait shows the last failure, and that it is not the end."""
    waited = await stage.service.wait(run_id, 0)
    assert waited.timeout_kind == agent_pb2.TIMEOUT_KIND_WAIT_EXPIRED
    assert waited.state == run_pb2.RUN_STATE_RUNNING
    assert waited.error_pending
    assert not waited.payloads
    _check_error(waited.error, fault)


def _check_error(error: run_pb2.RunError, fault: Fault) -> None:
    """The error names the fault and its place, and says what to do."""
    assert (error.reason, error.provider, error.model) == (fault.reason, "acme", "m1")
    assert (error.http_status, error.retryable) == (fault.http_status, fault.retryable)
    assert "acme" in error.message
    assert "m1" in error.message
    assert (f"HTTP {fault.http_status}" in error.message) == bool(fault.http_status)
    for words in fault.says:
        assert words in error.message
    assert len(error.message.encode()) <= 1000


def _check_retries(reading: Reading, fault: Fault) -> None:
    """One RETRY event for each further try; what a voided message had said comes under no other id and in no entry."""
    retries = reading.phases(event_pb2.LIFECYCLE_PHASE_RETRY)
    assert [retry.attempt for retry in retries] == list(range(2, len(fault.delays_s) + 2))
    assert [retry.delay.ToNanoseconds() / 1e9 for retry in retries] == list(fault.delays_s)
    for retry in retries:
        assert retry.state == run_pb2.RUN_STATE_RUNNING
        assert (retry.provider, retry.model) == ("acme", "m1")
        _check_error(retry.error, fault)
    streamed = list(dict.fromkeys(event.assistant.message_id for event in reading.of_kind("assistant")))
    ended = [event.message.message_id for event in reading.of_kind("message") if event.message.role == "assistant"]
    voided = [retry.void_message_id for retry in retries]
    if fault.voids:
        assert voided == streamed[:-1]
        assert ended == streamed[-1:]
    else:
        assert voided == [""] * len(retries)
        assert ended == streamed


@pytest.mark.parametrize("transport", ["aiohttp", "httpx"])
async def test_a_service_that_refuses_connections_is_tried_four_times(
    tmp_path: Path, model: ModelServer, transport: str
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        async with service_with_provider(tmp_path, model, base_url, transport) as stage:
            run_id = await stage.accept()
            for delay_s in BACKOFF:
                await stage.in_backoff()
                await stage.clock.advance(delay_s)
            expected = Expected(FAILED, "error", "PROVIDER_UNREACHABLE")
            reading = await check_outcome(stage.service, run_id, expected)
            error = reading.run.error
            assert (error.provider, error.model, error.http_status, error.retryable) == ("acme", "m1", 0, True)
            assert "refused" in error.message
            assert "base_url" in error.message
            assert len(reading.phases(event_pb2.LIFECYCLE_PHASE_RETRY)) == 3
            stage.key_is_nowhere(reading)
            await stage.lane_is_free()


async def test_a_fault_that_passes_leaves_one_answer_and_no_error(stage: Stage) -> None:
    stage.model.answer(_late_error(), failure(500), text_answer("Half a loaf"))
    run_id = await stage.accept()
    await stage.in_backoff()
    await stage.clock.advance(1)
    await stage.in_backoff()
    await stage.clock.advance(2)
    expected = Expected(run_pb2.RUN_STATE_SUCCEEDED, "stop", payloads=("Half a loaf",))
    reading = await check_outcome(stage.service, run_id, expected)
    void, not_shown = [retry.void_message_id for retry in reading.phases(event_pb2.LIFECYCLE_PHASE_RETRY)]
    assert void
    assert not not_shown
    deltas = [event.assistant for event in reading.of_kind("assistant")]
    assert "".join(part.delta for part in deltas if part.message_id == void) == "Half a "
    assert "".join(part.delta for part in deltas if part.message_id != void) == "Half a loaf"
    assert [message["role"] for message in stage.model.requests[-1].messages] == ["system", "user"]
    await stage.lane_is_free()
    texts = [message["content"] for message in stage.model.requests[-1].messages if message["role"] == "assistant"]
    assert texts == ["Half a loaf"]


async def test_the_pending_error_is_gone_when_the_next_try_speaks(stage: Stage) -> None:
    hold = asyncio.Event()
    stage.model.answer(failure(500), Answer([delta(content="Now"), hold, delta("stop"), DONE]))
    run_id = await stage.accept()
    await stage.in_backoff()
    assert (await stage.service.wait(run_id, 0)).error_pending
    await stage.clock.advance(1)
    subscription = stage.service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0))
    while not (await subscription.read()).assistant.delta:
        pass
    subscription.cancel()
    waited = await stage.service.wait(run_id, 0)
    assert not waited.error_pending
    assert not waited.HasField("error")
    hold.set()
    await check_outcome(stage.service, run_id, Expected(run_pb2.RUN_STATE_SUCCEEDED, "stop", payloads=("Now",)))


@pytest.mark.parametrize(
    ("steps", "limit_s", "says", "text"),
    [
        ([], 7, "no event came within 7 s", ""),
        ([delta(content="Half a ")], 30, "stood still for 30 s", "Half a "),
    ],
    ids=["no first event", "idle after text"],
)
async def test_a_model_that_stalls_ends_the_run_and_is_not_tried_again(
    stage: Stage, steps: list[bytes], limit_s: float, says: str, text: str
) -> None:
    stage.model.answer(Answer([*steps, asyncio.Event()]))
    run_id = await stage.accept()
    await stage.model.received(1)
    if text:
        subscription = stage.service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0))
        while not (await subscription.read()).assistant.delta:
            pass
        subscription.cancel()
    waiting = asyncio.create_task(stage.service.wait(run_id, 1000))
    await stage.clock.wait_for_timers(2)
    await stage.clock.advance(limit_s - 0.5)
    assert (await stage.service.wait(run_id, 0)).state == run_pb2.RUN_STATE_RUNNING
    await stage.clock.advance(0.5)
    await waiting
    expected = Expected(FAILED, "error", "PROVIDER_STALLED", (text,) if text else ())
    reading = await check_outcome(stage.service, run_id, expected)
    error = reading.run.error
    assert (error.provider, error.model, error.retryable) == ("acme", "m1", True)
    assert says in error.message
    assert "timeout_seconds" in error.message
    assert len(stage.model.requests) == 1
    await stage.model.connections_at_most(0)
    await stage.lane_is_free()


async def test_a_run_whose_time_is_up_while_its_model_is_silent_ends_at_its_deadline(stage: Stage) -> None:
    stage.model.answer(Answer([asyncio.Event()]))
    run_id = await stage.accept(timeout=Duration(seconds=5))
    await stage.model.received(1)
    await stage.clock.advance(5)
    await check_outcome(stage.service, run_id, Expected(run_pb2.RUN_STATE_TIMED_OUT, "deadline", "RUN_DEADLINE"))
    await stage.model.connections_at_most(0)


async def test_an_abort_during_the_backoff_ends_the_run_at_once(stage: Stage) -> None:
    stage.model.answer(failure(500))
    run_id = await stage.accept()
    await stage.in_backoff()
    receipt = await stage.service.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))
    assert list(receipt.aborted_run_ids) == [run_id]
    await check_outcome(stage.service, run_id, Expected(run_pb2.RUN_STATE_CANCELLED, "rpc"))
    assert len(stage.model.requests) == 1
    await stage.lane_is_free()


async def test_a_deadline_during_the_backoff_ends_the_run_with_the_deadline(stage: Stage) -> None:
    stage.model.answer(failure(503, None, {"retry-after": "60"}))
    run_id = await stage.accept(timeout=Duration(seconds=10))
    await stage.in_backoff()
    await stage.clock.advance(10)
    expected = Expected(run_pb2.RUN_STATE_TIMED_OUT, "deadline", "RUN_DEADLINE")
    await check_outcome(stage.service, run_id, expected)
    assert len(stage.model.requests) == 1
