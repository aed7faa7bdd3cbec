"""Cases of group a that a chat completions service can produce, over real HTTP. The other dialects: pending.md."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cases.case_files import case
from tests.cases.observing import (
    Observed,
    calls_sent,
    check_conversations,
    check_idle,
    observe,
    results_sent,
    texts,
)
from tests.cases.stage import Stage
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import DONE, Answer, Step, delta, gzipped
from tests.fakes.model_server import ModelServer
from tests.fakes.service import running_service

from laneway.v1 import agent_pb2, event_pb2, run_pb2, session_pb2
from lanewayd.app import Seams


async def play(stage: Stage, *answers: Answer, session_key: str = "s") -> Observed:
    """One run against these answers; what follows them is the text `ok`."""
    stage.model.answer(*answers)
    accepted = await stage.service.accept("go", session_key=session_key)
    observed = await observe(stage.service, accepted.run_id)
    check_conversations(stage.model)
    return observed


def check_ended_ok(observed: Observed, text: str = "ok") -> None:
    """The run succeeded and its last message is `text`."""
    assert observed.run.state == run_pb2.RUN_STATE_SUCCEEDED
    assert observed.payloads == [text]
    assert observed.of_kind("message")[-1].message.text == text


def check_calls(stage: Stage, observed: Observed, *expected: tuple[str, dict[str, object]]) -> None:
    """`rec` ran once per expected (id, arguments); transcript, events and the next request name the same calls."""
    ids = [call_id for call_id, _ in expected]
    assert list(zip(stage.rec.call_ids, stage.rec.seen, strict=True)) == list(expected)
    assert [(call.call_id, json.loads(call.arguments_json)) for call in observed.calls] == list(expected)
    assert [tool.call_id for tool in observed.tools(event_pb2.TOOL_PHASE_START)] == ids
    assert [result.call_id for result in observed.tool_results] == ids
    assert calls_sent(stage.model.requests[-1]) == list(expected)
    assert results_sent(stage.model.requests[-1]) == [(call_id, f"r{n}") for n, call_id in enumerate(ids, 1)]


async def test_b_001_calls_without_an_index_are_told_apart_by_their_ids(stage: Stage) -> None:
    observed = await play(stage, case("B-001").answer())
    check_ended_ok(observed)
    check_calls(stage, observed, ("call_a", {"k": 1}), ("call_b", {"k": 2}))
    assert len(stage.model.requests) == 2


async def test_b_002_a_call_without_an_id_gets_one_that_is_unique_in_the_session(stage: Stage) -> None:
    first = await play(stage, case("B-002").answer())
    check_ended_ok(first)
    (made_up,) = stage.rec.call_ids
    assert made_up
    check_calls(stage, first, (made_up, {"p": "x"}))
    # `ok` is the second turn's text; the first turn brings none.
    assert first.text == "ok"
    assert not [block for block in first.answers[0].content if block.text]

    await play(stage, case("B-002").answer())
    assert len(set(stage.rec.call_ids)) == 2


async def test_b_003_another_id_on_a_used_index_is_another_call(stage: Stage) -> None:
    observed = await play(stage, case("B-003").answer())
    check_ended_ok(observed)
    check_calls(stage, observed, ("call_a", {"p": "a"}), ("call_b", {"p": "b"}))


async def test_b_004_glued_argument_objects_are_as_many_calls(stage: Stage) -> None:
    observed = await play(stage, case("B-004").answer())
    check_ended_ok(observed)
    ids = stage.rec.call_ids
    assert ids[0] == "g1"
    assert len(set(ids)) == 3
    check_calls(stage, observed, (ids[0], {"q": "a}{"}), (ids[1], {"q": "b"}), (ids[2], {"q": "c"}))


@pytest.mark.parametrize("arguments", ['"arguments":""', '"arguments":null', '"arguments":"  "', ""])
async def test_b_005_absent_arguments_are_an_empty_object(stage: Stage, arguments: str) -> None:
    given = ',"arguments":""'
    observed = await play(stage, case("B-005").answer((given, f",{arguments}" if arguments else "")))
    check_ended_ok(observed)
    assert [call.arguments for call in stage.now.calls] == [{}]
    assert [call.arguments_json for call in observed.calls] == ["{}"]
    sent = stage.model.requests[-1].messages[-2]["tool_calls"]
    assert [call["function"]["arguments"] for call in sent] == ["{}"]


async def test_b_006_arguments_that_come_as_an_object_are_replayed_as_json_text(stage: Stage) -> None:
    observed = await play(stage, case("B-006").answer())
    check_ended_ok(observed)
    check_calls(stage, observed, ("o1", {"deep": {"x": [1, None, True]}}))
    replayed = stage.model.requests[-1].messages[-2]["tool_calls"][0]["function"]["arguments"]
    assert "null" in replayed
    assert "true" in replayed
    assert not [word for word in ("None", "True", "'") if word in replayed]


async def test_b_007_arguments_may_come_before_the_name(stage: Stage) -> None:
    observed = await play(stage, case("B-007").answer())
    check_ended_ok(observed)
    check_calls(stage, observed, ("n1", {"z": 5}))
    assert [tool.name for tool in observed.tools(event_pb2.TOOL_PHASE_START)] == ["rec"]


@pytest.mark.parametrize("has_finish_chunk", [True, False])
async def test_b_008_a_call_runs_whatever_the_finish_reason_says(stage: Stage, has_finish_chunk: bool) -> None:
    events = case("B-008").wire.split("\n\n")
    assert '"finish_reason":"stop"' in events[1]
    wire = case("B-008").wire if has_finish_chunk else case("B-008").wire.replace(events[1] + "\n\n", "")
    observed = await play(stage, Answer([wire.encode()]))
    check_ended_ok(observed)
    check_calls(stage, observed, ("s1", {}))
    assert observed.text == "Looking. ok"
    sent = stage.model.requests[-1].messages
    assert texts(sent[1:]) == [("user", "go"), ("assistant", "Looking. "), ("tool", "r1")]
    assert len(stage.model.requests) == 2


async def test_b_009_an_answer_cut_by_its_length_runs_no_call(stage: Stage) -> None:
    observed = await play(stage, case("B-009").answer())
    assert stage.rec.calls == []
    assert observed.run.state == run_pb2.RUN_STATE_SUCCEEDED
    assert observed.waited.truncated
    assert observed.terminal.stop_reason == observed.run.stop_reason == "length"
    assert len(stage.model.requests) == 1
    assert observed.calls == []
    assert observed.tools(event_pb2.TOOL_PHASE_START) == []

    # The next request is not spoilt by what was cut.
    check_ended_ok(await play(stage))
    assert "half" not in stage.model.requests[-1].body.decode()


async def test_b_010_usage_behind_the_finish_reason_counts_once(stage: Stage) -> None:
    observed = await play(stage, case("B-010").answer())
    check_ended_ok(observed, "hi")
    usage = observed.waited.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (11, 2, 13)
    assert not usage.unavailable
    assert observed.of_kind("message")[-1].message.usage == observed.answers[-1].usage == usage
    session = await stage.service.sessions.GetSession(session_pb2.GetSessionRequest(session_key="s"))
    assert (session.usage.input_tokens, session.usage.output_tokens) == (11, 2)


async def test_b_011_one_space_after_the_colon_is_optional(stage: Stage) -> None:
    observed = await play(stage, case("B-011").answer())
    check_ended_ok(observed, " two three")
    assert observed.text == " two three"


async def test_b_012_comments_and_events_without_data_are_nothing(stage: Stage) -> None:
    observed = await play(stage, case("B-012").answer())
    check_ended_ok(observed)
    assert observed.text == "ok"
    assert len(stage.model.requests) == 1


async def test_b_013_line_ends_of_every_kind_frame_events(stage_of_both_transports: Stage) -> None:
    observed = await play(stage_of_both_transports, case("B-013").answer())
    check_ended_ok(observed, "AB")
    assert observed.text == "AB"


async def test_b_014_only_cr_and_lf_end_a_line(stage_of_both_transports: Stage) -> None:
    stage = stage_of_both_transports
    observed = await play(stage, case("B-014").answer())
    check_ended_ok(observed)
    text = "a\u2028b\u2029c\u0085d"
    check_calls(stage, observed, ("u1", {"t": "x\u2028y"}))
    assert observed.text == text + "ok"
    assert [block.text for block in observed.answers[0].content if block.text] == [text]
    assert stage.model.requests[-1].messages[-2]["content"] == text

    exported = stage.service.sessions.ExportSession(session_pb2.ExportSessionRequest(session_key="s"))
    file = stage.service.home / "export.jsonl"
    with file.open("w", encoding="utf-8", newline="\n") as out:
        async for response in exported:
            out.write(response.line + ("" if response.line_continues else "\n"))
    with file.open(encoding="utf-8") as lines:
        messages = [json.loads(line) for line in lines]
    said = [line["message"]["content"] for line in messages if line["type"] == "message"]
    assert said[1][0] == {"type": "text", "text": text}
    assert len(messages) == 1 + len(observed.entries) + 1  # the header before them, the end behind


async def test_b_015_compressed_single_bytes_are_shown_at_once(stage_of_both_transports: Stage) -> None:
    """The pause of 3 s is as long as the test needs to see the first event."""
    stage = stage_of_both_transports
    parts = case("B-015").body().split(b"\n\n")
    rest = asyncio.Event()
    steps: list[Step] = [parts[0] + b"\n\n", rest, *(part + b"\n\n" for part in parts[1:-1])]
    stage.model.answer(gzipped(steps))
    accepted = await stage.service.accept("go")
    request = agent_pb2.SubscribeRequest(run_id=accepted.run_id, after_seq=0)
    async for event in stage.service.agent.Subscribe(request):
        if event.WhichOneof("payload") == "assistant":
            assert not rest.is_set()
            assert event.assistant.delta == "\u2705 ok"
            rest.set()
    assert rest.is_set()
    check_ended_ok(await observe(stage.service, accepted.run_id), "\u2705 ok")


async def test_b_016_a_call_cut_by_the_end_of_the_body_never_runs(timed_stage: Stage) -> None:
    stage = timed_stage
    stage.model.answer(case("B-016").answer())
    accepted = await stage.service.accept("go", session_key="s")
    async for event in stage.service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=accepted.run_id, after_seq=0)):
        if event.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_RETRY:
            assert event.lifecycle.error.reason == "PROVIDER_STREAM_CUT"
            assert not event.lifecycle.void_message_id
            await stage.clock.advance(1)
    observed = await observe(stage.service, accepted.run_id)
    check_ended_ok(observed)
    assert stage.rec.calls == []
    assert observed.calls == []
    assert observed.tools(event_pb2.TOOL_PHASE_START) == []
    assert len(stage.model.requests) == 2
    check_conversations(stage.model)
    assert b"unfin" not in stage.model.requests[-1].body


async def test_b_017_a_finish_reason_ends_an_answer_and_so_does_the_end_mark(
    stage_of_both_transports: Stage,
) -> None:
    stage = stage_of_both_transports
    # Variant 1: closed behind the finish reason, without the end mark.
    check_ended_ok(await play(stage, case("B-017").answer()), "fine")
    # Variant 2: the end mark came and the connection stays open: the test never lets the answer end.
    open_end = asyncio.Event()
    observed = await play(stage, Answer([case("B-017").body() + DONE, open_end]))
    check_ended_ok(observed, "fine")
    took = observed.waited.ended_at.ToNanoseconds() - observed.waited.started_at.ToNanoseconds()
    assert took < 1_000_000_000
    await stage.model.connections_at_most(0)
    assert len(stage.model.requests) == 2


@pytest.mark.parametrize("transport", ["aiohttp", "httpx"])
async def test_b_017_without_an_end_mark_an_open_connection_is_left_within_the_idle_window(
    tmp_path: Path, transport: str
) -> None:
    """Variant 3, with an idle window of 0.3 s."""
    toml = f'\n[models]\ntransport = "{transport}"\nidle_timeout_seconds = 0.3\n'
    home = tmp_path / "home"
    async with ModelServer() as model, running_service(home, model=model, toml=toml) as service:
        model.answer(Answer([case("B-017").body(), asyncio.Event()]))
        accepted = await service.accept("go")
        observed = await observe(service, accepted.run_id)
        check_ended_ok(observed, "fine")
        assert len(model.requests) == 1
        await model.connections_at_most(0)


def commented(moments: list[asyncio.Event]) -> list[Step]:
    """A comment at each moment."""
    return [step for moment in moments for step in (moment, b": keepalive\n\n")]


async def half_seconds(clock: FakeClock, moments: list[asyncio.Event], *, until: asyncio.Future[Any]) -> None:
    """At each moment a comment comes; half a second passes when the service has read it and waits again."""
    for moment in moments:
        is_read = asyncio.ensure_future(clock.wait_for_another())
        moment.set()
        await asyncio.wait([is_read, until], return_when=asyncio.FIRST_COMPLETED)
        if until.done():
            is_read.cancel()
            return
        await clock.advance(0.5)
    raise AssertionError("the service still waits")


async def test_b_027_only_events_keep_a_stream_alive(tmp_path: Path) -> None:
    """Both the stalled stream and the control, in the service's own time, with the case's numbers."""
    clock = FakeClock()
    toml = "\n[models]\nidle_timeout_seconds = 2\n[events]\ndelta_interval_ms = 0\n"
    home = tmp_path / "home"
    seams = Seams(clock=clock)
    async with ModelServer() as model, running_service(home, model=model, toml=toml, seams=seams) as service:
        # Control: an event every 1.5 s for 10 s is never cut.
        beats = [asyncio.Event() for _ in range(7)]
        steps: list[Step] = [case("B-027").body()]
        for beat in beats:
            steps += [beat, delta(content=".")]
        model.answer(Answer([*steps, delta("stop"), DONE]))
        accepted = await service.accept("go", session_key="s")
        await model.received(1)
        control = service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=accepted.run_id, after_seq=0))
        waiting = list(beats)
        async for event in control:
            # The run reads on: START and the user's message, then one delta per beat.
            if waiting and event.WhichOneof("payload") in ("message", "assistant"):
                await clock.advance(1.5)
                waiting.pop(0).set()
        assert waiting == []
        check_ended_ok(await observe(service, accepted.run_id), "." * 7)

        # Stalled: comments every 0.5 s and nothing else.
        # Nothing was shown and there is no other model, so it is tried once more.
        tries = [[asyncio.Event() for _ in range(8)] for _ in range(2)]
        for comments in tries:
            model.answer(Answer([case("B-027").body(), *commented(comments), asyncio.Event()]))
        accepted = await service.accept("go", session_key="s", timeout={"seconds": 3600})
        ended = asyncio.ensure_future(service.wait(accepted.run_id, 600))
        await model.received(2)
        await half_seconds(clock, tries[0], until=asyncio.ensure_future(model.received(3)))
        await half_seconds(clock, tries[1], until=ended)
        stalled = await observe(service, accepted.run_id)
        lasted_ms = stalled.run.ended_at.ToMilliseconds() - stalled.run.started_at.ToMilliseconds()
        assert 4000 <= lasted_ms <= 20_000
        assert stalled.run.state == run_pb2.RUN_STATE_FAILED
        assert stalled.run.error.reason == "PROVIDER_STALLED"
        assert stalled.run.error.provider == "mock"
        await check_idle(service)
        again = await service.accept("go", session_key="s")
        check_ended_ok(await observe(service, again.run_id))


async def test_b_028_typed_parts_and_empty_content_make_one_text_and_one_reasoning(stage: Stage) -> None:
    observed = await play(stage, case("B-028").answer())
    check_ended_ok(observed, "Hello!")
    assert observed.text == "Hello!"
    assert observed.reasoning == "I should greet"
    assert len({event.reasoning.content_index for event in observed.of_kind("reasoning")}) == 1
    blocks = observed.answers[0].content
    assert [block.reasoning for block in blocks if block.WhichOneof("block") == "reasoning"] == ["I should greet"]
