"""What watchers see of tool calls and reasoning: as they say, else as the session has it, else the agent (04, 3.3)."""

from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.model_answers import DONE as END_MARK
from tests.fakes.model_answers import Answer, calls_answer, delta, failure
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.test_session_settings import update

from laneway.v1 import agent_pb2, event_pb2, session_pb2

FULL, OFF, ON = agent_pb2.VERBOSITY_FULL, agent_pb2.VERBOSITY_OFF, agent_pb2.VERBOSITY_ON
STREAM, SHOWN, HIDDEN = (
    session_pb2.REASONING_VISIBILITY_STREAM,
    session_pb2.REASONING_VISIBILITY_ON,
    session_pb2.REASONING_VISIBILITY_OFF,
)
REASONING = event_pb2.STREAM_KIND_REASONING


def thoughtful(text: str = "Yes.") -> Answer:
    return Answer([delta(reasoning_content="Let me see."), delta(content=text), delta("stop"), END_MARK])


async def kinds_of(service: RunningService, run_id: str, **fields: Any) -> list[str]:
    request = agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0, **fields)
    return [str(event.WhichOneof("payload")) async for event in service.agent.Subscribe(request)]


async def results_of(service: RunningService, run_id: str, **fields: Any) -> list[str]:
    """The results that a reader of the run sees."""
    request = agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0, **fields)
    events = [event async for event in service.agent.Subscribe(request)]
    return [event.tool.result.text for event in events if event.tool.HasField("result")]


@pytest.fixture
async def stage(tmp_path: Path, model: ModelServer) -> AsyncGenerator[RunningService, None]:
    async with running_service(tmp_path / "home", model=model, tools=[RecordingTool("rec")]) as service:
        yield service


@pytest.mark.parametrize(
    ("of_session", "asked", "are_shown"),
    [
        (None, None, False),
        (None, FULL, True),
        (OFF, None, False),
        (ON, None, False),
        (FULL, None, True),
        (FULL, OFF, False),
        (FULL, ON, False),
        (OFF, FULL, True),
    ],
)
async def test_verbose_of_the_subscription_then_of_the_session_decides_about_results(
    stage: RunningService, model: ModelServer, of_session: Any, asked: Any, are_shown: bool
) -> None:
    model.answer(calls_answer(("rec", {})))
    run = await stage.accept(session_key="s")
    await stage.wait(run.run_id)
    if of_session is not None:
        await stage.sessions.UpdateSession(update(verbose=of_session))
    fields = {} if asked is None else {"verbose": asked}
    assert await results_of(stage, run.run_id, **fields) == (["done"] if are_shown else [])


@pytest.mark.parametrize(
    ("of_session", "is_live", "is_in_result"),
    [(None, True, False), (HIDDEN, False, False), (SHOWN, False, True), (STREAM, True, False)],
)
async def test_reasoning_is_live_or_in_the_result_or_neither(
    stage: RunningService, model: ModelServer, of_session: Any, is_live: bool, is_in_result: bool
) -> None:
    """Spec 08, 2.1. Without any setting watchers see all that the agent does."""
    await stage.finish(session_key="s")
    if of_session is not None:
        await stage.sessions.UpdateSession(update(reasoning=of_session))
    model.answer(thoughtful())
    request = agent_pb2.AgentRequest(message="hm?", session_key="s", model="mock/any")
    events = [event async for event in stage.agent.RunAgent(request)]
    run_id = events[0].run_id
    kinds = Counter(event.WhichOneof("payload") for event in events)
    assert (kinds["reasoning"] > 0, kinds["message"], kinds["lifecycle"]) == (is_live, 2, 2)
    assert Counter(await kinds_of(stage, run_id))["reasoning"] == kinds["reasoning"]
    # Who names it gets it, whatever the session says.
    assert "reasoning" in await kinds_of(stage, run_id, streams=[REASONING])
    answer = await stage.wait(run_id)
    shown = [(payload.text, payload.is_reasoning) for payload in answer.payloads]
    assert shown == [*([("Let me see.", True)] if is_in_result else []), ("Yes.", False)]


async def test_a_change_counts_from_the_next_event_of_a_run_that_is_watched(tmp_path: Path, model: ModelServer) -> None:
    """R-4.36."""
    tool = RecordingTool("rec", hold=True)
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        model.answer(calls_answer(("rec", {})))
        model.answer(calls_answer(("rec", {})))
        run = await service.accept(session_key="s")
        events = service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run.run_id, after_seq=0))
        results = []
        for verbose in (None, FULL):
            call = await tool.asked.get()
            if verbose is not None:
                await service.sessions.UpdateSession(update(verbose=verbose))
            call.answer.set_result(DONE)
            async for event in events:
                if event.tool.phase == event_pb2.TOOL_PHASE_RESULT:
                    results.append(event.tool.HasField("result"))
                    break
        events.cancel()
        assert results == [False, True]
        await service.wait(run.run_id)


@pytest.mark.parametrize(("trace", "is_traced"), [(None, False), (False, False), (True, True)])
async def test_trace_tells_of_the_choice_of_models(
    tmp_path: Path, model: ModelServer, trace: bool | None, is_traced: bool
) -> None:
    toml = '[agents.defaults]\nmodel = "mock/first"\nfallbacks = ["mock/second"]\n'
    async with running_service(tmp_path / "home", model=model, toml=toml) as service:
        await service.finish(session_key="s", model="")
        if trace is not None:
            await service.sessions.UpdateSession(update(trace=trace))
        model.answer(failure(404, {"error": {"message": "no such model", "code": "model_not_found"}}))
        run = await service.accept(session_key="s", model="")
        assert (await service.wait(run.run_id)).status == agent_pb2.WAIT_STATUS_OK
        lines = [
            (event.diagnostic.source, event.diagnostic.text)
            for event in await service.events(run.run_id)
            if event.WhichOneof("payload") == "diagnostic"
        ]
        first = ("models", "mock/first (source: defaults)")
        second = ("models", "mock/second instead of mock/first after PROVIDER_MODEL_NOT_FOUND")
        assert lines == ([first, second] if is_traced else [])


async def test_where_the_session_says_nothing_its_agent_decides(tmp_path: Path, model: ModelServer) -> None:
    toml = '[agents.defaults]\nverbose = "full"\n[agents.list.main]\nreasoning = "on"\n[agents.list.open]\n'
    async with running_service(tmp_path / "home", model=model, toml=toml, tools=[RecordingTool("rec")]) as service:
        for agent, is_live in (("main", False), ("open", True)):
            model.answer(calls_answer(("rec", {})))
            model.answer(thoughtful())
            run = await service.accept(session_key=f"agent:{agent}:s")
            answer = await service.wait(run.run_id)
            assert await results_of(service, run.run_id) == ["done"]
            assert ("reasoning" in await kinds_of(service, run.run_id)) == is_live
            assert [payload.is_reasoning for payload in answer.payloads] == ([False] if is_live else [True, False])
