"""One terminal event per run, and Wait says the same thing (D-2, D-3): kills around the end, waiters within it."""

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from tests.fakes.commit_gates import HoldingGate
from tests.fakes.model_answers import DONE, Answer, delta, event, failure, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.service import running_service
from tests.processes.conftest import MakeServer
from tests.processes.failpoints import Failpoint, kinds_of
from tests.processes.observers import Observer, Sightings, is_terminal

from laneway.v1 import agent_pb2, agent_pb2_grpc, run_pb2, session_pb2
from lanewayd.app import Seams

pytestmark = pytest.mark.timeout(180)

WAITERS = 200


@pytest.mark.parametrize("kind", ["start", "answer", "end"])
async def test_a_kill_leaves_collected_messages_with_their_host_or_in_the_queue(
    make_server: MakeServer, model: ModelServer, kind: str
) -> None:
    """The second group of each kind is that of the collected turn; `busy` made the first one."""
    server = make_server(is_shadowed=True, failpoint=Failpoint("after", kind, nth=2))
    await server.start()
    held = asyncio.Event()
    model.answer(Answer([delta(content="busy"), held, delta("stop"), DONE]))
    busy = await server.accept("busy", session_key="s")
    await server.event(busy.run_id, lambda event: event.assistant.delta == "busy")
    mode = agent_pb2.QUEUE_MODE_COLLECT
    runs = [await server.accept(text, session_key="s", queue_mode=mode) for text in ("one", "two", "three")]
    held.set()
    await server.exited()
    assert server.extras is not None
    server.extras = replace(server.extras, failpoint=None)
    server.lose_power()
    await server.start()

    waited = [await server.wait(run.run_id) for run in runs]
    assert [each.state for each in waited] == [run_pb2.RUN_STATE_SUCCEEDED] * 3
    assert [each.merged_into_run_id for each in waited] == ["", runs[0].run_id, runs[0].run_id]
    for run in runs:
        *before, last = await server.events(run.run_id)
        assert is_terminal(last)
        assert not any(map(is_terminal, before))
    collected = [request for request in model.requests if "three" in str(request.messages[-1])]
    assert len(collected) in ((1,) if kind in ("answer", "end") else (1, 2))
    assert all("one" in str(request.messages[-1]) for request in collected)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("kind", ["accept", "inject", "answer", "end"])
async def test_a_kill_leaves_a_steering_message_in_its_host_or_in_the_queue(
    make_server: MakeServer, model: ModelServer, kind: str, side: str
) -> None:
    """`accept` is that of the message itself; `inject` takes it in."""
    server = make_server(is_shadowed=True, failpoint=Failpoint(side, kind, nth=2 if kind == "accept" else 1))
    await server.start()
    held = asyncio.Event()
    usage = event(id="c", choices=[], usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5})
    model.answer(Answer([delta(content="busy"), held, delta("stop"), usage, DONE]))
    host = await server.accept("first", session_key="s")
    await server.event(host.run_id, lambda event: event.assistant.delta == "busy")
    mode = agent_pb2.QUEUE_MODE_STEER
    with contextlib.suppress(grpc.aio.AioRpcError):
        await server.accept("and this", session_key="s", queue_mode=mode, idempotency_key="k")
    held.set()
    await server.exited()
    server.lose_power()
    assert server.extras is not None
    server.extras = replace(server.extras, failpoint=None)
    await server.start()

    steer = await server.accept("and this", session_key="s", queue_mode=mode, idempotency_key="k")
    for run in (host, steer):
        assert (await server.wait(run.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
        *before, last = await server.events(run.run_id)
        assert is_terminal(last)
        assert not any(map(is_terminal, before))
    page = await server.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key="s"))
    said = [entry.user.content[0].text for entry in page.entries if entry.HasField("user")]
    assert said == ["first", "and this"]
    roles = [entry.WhichOneof("body") for entry in page.entries]
    assert roles[-1] == "assistant", "the message has its answer"


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("kind", ["answer", "end"])
async def test_a_kill_around_the_end_leaves_one_terminal_event(
    make_server: MakeServer, model: ModelServer, side: str, kind: str
) -> None:
    """`after answer` lies between the final message and the terminal, `after end` between COMMIT and publishing.

    The writer is held there until the readers that stay attached have seen all they may see.
    """
    server = make_server(is_shadowed=True, failpoint=Failpoint(side, kind, action="hold"))
    await server.start()
    shown = asyncio.Event()
    # The end of the stream brings no further text, so that the message is stored by a COMMIT of its own.
    usage = event(id="c", choices=[], usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5})
    model.answer(Answer([delta(content="All of it"), shown, delta("stop"), usage, DONE]), text_answer("All ", "of it"))
    sightings = Sightings()
    accepted = await server.accept("go", session_key="s")
    await server.event(accepted.run_id, lambda event: event.assistant.delta == "All of it")
    shown.set()
    observers = [
        Observer("run", sightings, server.channel, run_id=accepted.run_id),
        Observer("run too", sightings, server.new_channel(), run_id=accepted.run_id),
    ]
    following = [asyncio.create_task(observer.follow()) for observer in observers]
    await server.notice("held")
    await server.kill()
    server.lose_power()
    assert server.extras is not None
    server.extras = replace(server.extras, failpoint=None)
    await server.start()

    waited = await server.wait(accepted.run_id)
    await asyncio.gather(*following)
    assert sightings.violations == []
    log = sightings.log(accepted.run_id)
    assert log == await server.events(accepted.run_id)
    assert [event.seq for event in log if is_terminal(event)] == [len(log)]
    assert waited.state == run_pb2.RUN_STATE_SUCCEEDED
    assert [payload.text for payload in waited.payloads] == ["All of it"]
    assert waited.ended_at == log[-1].lifecycle.ended_at
    # A final answer that was stored is not asked for again.
    assert len(model.requests) == (1 if (side, kind) != ("before", "answer") else 2)


@pytest.mark.parametrize("is_after", [False, True], ids=["before COMMIT", "before publishing"])
@pytest.mark.parametrize(
    "answer", [text_answer("fine"), failure(400, {"error": {"message": "no"}})], ids=["success", "failure"]
)
async def test_waiters_that_come_within_the_terminal_commit_hear_what_the_log_says(
    tmp_path: Path, model: ModelServer, answer: Answer, is_after: bool
) -> None:
    gate = HoldingGate(lambda command: "end" in kinds_of(command), after=is_after)
    async with running_service(tmp_path / "home", model=model, seams=Seams(commit_gate=gate)) as service:
        model.answer(answer)
        run_id = (await service.accept()).run_id
        early = [asyncio.ensure_future(service.wait(run_id)) for _ in range(WAITERS // 4)]
        early_logs = [asyncio.ensure_future(service.events(run_id)) for _ in range(10)]
        await gate.reached()
        channels = [
            grpc.aio.insecure_channel(service.target, options=[("grpc.use_local_subchannel_pool", 1)]) for _ in range(4)
        ]
        stubs = [agent_pb2_grpc.AgentServiceStub(channel) for channel in channels]
        waits = [stubs[number % 4].Wait(agent_pb2.WaitRequest(run_id=run_id)) for number in range(WAITERS)]
        logs = [asyncio.ensure_future(service.events(run_id)) for _ in range(10)]
        for stub in stubs:
            # Answers on the same connections: the waits have arrived before.
            await stub.ListRuns(agent_pb2.ListRunsRequest())
        gate.release()
        answers = await asyncio.gather(*early, *waits)
        read = await asyncio.gather(*early_logs, *logs)
        run = await service.agent.GetRun(agent_pb2.GetRunRequest(run_id=run_id))
        for channel in channels:
            await channel.close()

    assert all(log == read[0] for log in read)
    assert {answer.SerializeToString(deterministic=True) for answer in answers} == {
        answers[0].SerializeToString(deterministic=True)
    }
    end, waited = read[0][-1].lifecycle, answers[0]
    for told in (waited, run):
        assert told.state == end.state
        assert told.stop_reason == end.stop_reason
        assert (told.started_at, told.ended_at) == (end.started_at, end.ended_at)
        assert told.error == end.error
        assert told.usage == end.usage
    assert waited.payloads == run.payloads
    texts = [event.message.text for event in read[0] if event.message.role == "assistant"]
    assert [payload.text for payload in waited.payloads if not payload.is_error] == texts[-1:]
