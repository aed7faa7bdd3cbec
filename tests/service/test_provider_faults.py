"""Faults of a model service through the whole service, with both transports: what callers are told, how often it was
tried, that the lane is free afterwards, and that the key is nowhere (spec 04, 5; TESTING, an error names the fault)."""

import socket
from pathlib import Path

import pytest
from tests.fakes.model_server import ModelServer
from tests.service.agreement import Expected, Reading, check_outcome
from tests.service.provider_faults import BACKOFF, FAULTS, Fault
from tests.service.provider_stage import KEY, ProviderStage, service_with_provider

from laneway.v1 import agent_pb2, event_pb2, run_pb2

FAILED = run_pb2.RUN_STATE_FAILED


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
async def test_a_fault_of_the_model_service_ends_as_promised(provider: ProviderStage, fault: Fault) -> None:
    tries = len(fault.delays_s) + 1
    provider.model.answer(*(fault.answer() for _ in range(tries)))
    run_id = await provider.accept()
    for number, delay_s in enumerate(fault.delays_s, start=1):
        await provider.in_backoff()
        await _check_pending(provider, run_id, fault)
        assert len(provider.model.requests) == number
        await provider.clock.advance(delay_s * 0.99)
        assert provider.clock.sleeper_count == 1
        await provider.clock.advance(delay_s * 0.01)

    payloads = (fault.text,) if fault.text else ()
    reading = await check_outcome(provider.service, run_id, Expected(FAILED, "error", fault.reason, payloads))
    assert len(provider.model.requests) == tries
    assert {request.headers["authorization"] for request in provider.model.requests} == {f"Bearer {KEY}"}
    _check_error(reading.run.error, fault)
    _check_retries(reading, fault)
    provider.key_is_nowhere(reading)
    await provider.lane_is_free()


async def _check_pending(provider: ProviderStage, run_id: str, fault: Fault) -> None:
    """During the back-off a wait shows the last failure, and that it is not the end."""
    waited = await provider.service.wait(run_id, 0)
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
        async with service_with_provider(tmp_path, model, base_url, transport) as provider:
            run_id = await provider.accept()
            for delay_s in BACKOFF:
                await provider.in_backoff()
                await provider.clock.advance(delay_s)
            expected = Expected(FAILED, "error", "PROVIDER_UNREACHABLE")
            reading = await check_outcome(provider.service, run_id, expected)
            error = reading.run.error
            assert (error.provider, error.model, error.http_status, error.retryable) == ("acme", "m1", 0, True)
            assert "refused" in error.message
            assert "base_url" in error.message
            assert len(reading.phases(event_pb2.LIFECYCLE_PHASE_RETRY)) == 3
            provider.key_is_nowhere(reading)
            await provider.lane_is_free()
