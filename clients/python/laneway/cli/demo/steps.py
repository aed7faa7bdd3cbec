"""The steps of `laneway demo`. Each makes its claims on the stage's report and shows what happens meanwhile."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from laneway.cli.demo.logs import Seen, difference, gaps_in
from laneway.cli.demo.report import Step
from laneway.cli.demo.stage import Stage, log_of
from laneway.cli.text import seconds_text, short_arguments
from laneway.v1 import event_pb2

_ABOUT_PARIS = ("Paris", "Eiffel", "Louvre")
_COMMAND = "date -u +%A"
_TOOL_MESSAGE = f"What day is it? Use the tool exec to run this command: {_COMMAND}"
_SCRIPT_NAME = "weekday"
# Plays what the embedded model should have done; server, tool, store and stream are the same.
_SCRIPT = f"""\
turns:
  - tool_calls: [{{name: exec, arguments: {{command: "{_COMMAND}"}}}}]
  - text: ["It is ", "${{tool_result}}"]
"""
_LEAVE_AFTER_DELTAS = 11
_AWAY_EVENTS = 6
_KILL_AFTER_DELTAS = 10
_SIGKILLED = -9
_ID_WIDTH = 12


async def start(stage: Stage) -> None:
    """A server on the scratch home, and the model it talks to."""
    stage.view.note(f"its home: {stage.home}")
    began = time.monotonic()
    await stage.start_server()
    took = seconds_text(time.monotonic() - began)
    stage.report.check("a server serves", True, found=f"process {stage.server.pid}, ready in {took}")
    stage.report.check("the embedded model is there", True, found=await stage.find_model())


async def talk(stage: Stage) -> None:
    """Two messages in one session."""
    check = stage.report.check
    _check_success(stage, await stage.turn("What is the capital of France?", session="talk"))
    seen = await stage.turn("What is it famous for?", session="talk")
    _check_success(stage, seen)
    check(
        "the second answer knows which city is meant, which only the first turn tells",
        any(word in seen.answer for word in _ABOUT_PARIS),
        found=f"it names {next((word for word in _ABOUT_PARIS if word in seen.answer), 'no sight of it')}",
        expected=f"one of {', '.join(_ABOUT_PARIS)} in the answer",
    )
    said = await stage.transcript("talk")
    check(
        "the session keeps the conversation in order",
        said == ["user", "assistant"] * 2,
        found=", ".join(said),
        expected="user, assistant, user, assistant",
    )


async def use_tool(stage: Stage) -> None:
    """One tool call with arguments of the model; if those are not what it was asked for, with those of a script."""
    expected = {_weekday()}
    seen = await stage.turn(_TOOL_MESSAGE, session="tool")
    if _commands(seen) != [_COMMAND]:
        stage.view.note(
            "the model has not called what it was asked to, as a model of this size may do. "
            "The same turn again, with a script in place of the model:"
        )
        path = stage.home / "scripts" / f"{_SCRIPT_NAME}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(_SCRIPT, encoding="utf-8")
        model = f"scripted/{_SCRIPT_NAME}"
        seen = await stage.turn(_TOOL_MESSAGE, session="tool", model=model)
    expected.add(_weekday())
    _check_success(stage, seen)
    commands, results = _commands(seen), seen.tool_results
    stage.report.check(
        "one call of the tool exec, with the command that was asked for",
        commands == [_COMMAND],
        found=", ".join(commands) or "no call",
        expected=_COMMAND,
    )
    stage.report.check(
        "its result is what the calendar of this machine says",
        len(results) == 1 and results[0].result.text.strip() in expected,
        found=", ".join(result.result.text.strip() for result in results),
        expected=" or ".join(sorted(expected)),
    )


async def resume(stage: Stage) -> None:
    """A subscriber leaves in the middle and comes back; another one stays."""
    left, stayed = Seen(), _Reader()
    async with stage.connected() as client:
        accepted = await stage.send(client, "Name the months of the year.", session="months")
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(stayed.read(client.subscribe(log_of(accepted.run_id))), name="the reader that stays")
                place, meanwhile = await _come_and_go(stage, accepted.run_id, left, stayed)
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures
    stage.report.check(
        "events were stored while it was away",
        meanwhile > place,
        found=f"{place + 1} to {meanwhile}",
        expected="a run that goes on without its subscriber",
    )
    _check_success(stage, left)
    _check_log(stage, left, "it got every event once and in order")
    wrong = difference(left.events, stayed.seen.events)
    stage.report.check(
        "a subscriber that never left has the same events, byte for byte",
        not wrong,
        found=wrong or f"{len(left.events)} of {len(stayed.seen.events)}",
        expected="two readings that are the same",
    )


async def survive(stage: Stage) -> None:
    """The server is killed in the middle of an answer, and its successor finishes the run."""
    check = stage.report.check
    seen = Seen()
    exit_status = None
    async with stage.connected() as client:
        accepted = await stage.send(client, "Name the planets of the solar system.", session="planets")
        async with aclosing(client.subscribe(log_of(accepted.run_id))) as events:
            async for event in events:
                seen.events.append(event)
                stage.view.show(event)
                if exit_status is None and len(seen.deltas) == _KILL_AFTER_DELTAS:
                    exit_status = await _kill_and_restart(stage, seen)
    check(
        "the server was killed in mid-answer",
        exit_status == _SIGKILLED,
        found="SIGKILL" if exit_status == _SIGKILLED else f"exit status {exit_status}",
        expected="an answer that is long enough to be killed in, and SIGKILL",
    )
    _check_success(stage, seen, "the new server has finished the same run")
    recovered = [step for step in seen.lifecycle if step.phase == event_pb2.LIFECYCLE_PHASE_RECOVERED]
    void_id = seen.deltas[0].message_id
    answer_id = seen.messages[-1].message_id if seen.messages else ""
    check(
        "the log says once that it was recovered and which message is void",
        [step.void_message_id for step in recovered] == [void_id] and answer_id not in ("", void_id),
        found=f"{_short_id(void_id)} is void, {_short_id(answer_id)} is the answer",
        expected="one RECOVERED that names the message that was begun, and another message as the answer",
    )
    _check_log(stage, seen, "over the kill no event was lost or doubled")
    replayed = await stage.replay(accepted.run_id)
    wrong = difference(seen.events, replayed.events)
    check("the stored log is what was seen live", not wrong, found=wrong, expected="the same bytes")
    said = await stage.transcript("planets")
    check(
        "the void text is not in the conversation",
        said == ["user", "assistant"],
        found=", ".join(said),
        expected="user, assistant",
    )


async def leave(stage: Stage) -> None:
    """The server goes, and nothing stays behind."""
    exit_status = await stage.stop_server()
    stage.report.check(
        "the server leaves in order when it is told to",
        exit_status == 0,
        found=f"exit code {exit_status}",
        expected="0",
    )
    started, living = stage.engines(), stage.living_engines()
    stage.report.check(
        "nothing is left of the model's processes, also of the killed server's",
        len(started) >= 2 and not living,
        found=f"{len(started)} started, {len(living)} live",
        expected="two or more started, none that lives",
    )


STEPS = (
    Step("Start", "A server on an empty scratch folder. Nothing else on this machine is read or changed.", start),
    Step("Talk", "Two messages of one session; the second one only makes sense after the first.", talk),
    Step(
        "Use a tool",
        "A model of 135M parameters cannot choose tools, so the message names one; the model fills in the arguments.",
        use_tool,
    ),
    Step("Lose the connection", "A subscriber goes away in the middle of an answer and comes back.", resume),
    Step(
        "Kill the server",
        "SIGKILL in the middle of an answer. The message was durable when it was accepted, so the run is finished.",
        survive,
    ),
    Step("Leave", "SIGTERM: what runs is finished, then the server goes.", leave),
)


@dataclass(slots=True)
class _Reader:
    """Reads one log to its end and tells how far it is."""

    seen: Seen = field(default_factory=Seen)
    _has_ended: bool = False
    _grown: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self, events: AsyncGenerator[event_pb2.Event, None]) -> None:
        """To the end."""
        try:
            async with aclosing(events):
                async for event in events:
                    self.seen.events.append(event)
                    self._grown.set()
        finally:
            self._has_ended = True
            self._grown.set()

    async def until(self, seq: int) -> None:
        """Return when event `seq` was read, or the last one."""
        while self.seen.last_seq < seq and not self._has_ended:
            self._grown.clear()
            await self._grown.wait()


async def _come_and_go(stage: Stage, run_id: str, seen: Seen, stayed: _Reader) -> tuple[int, int]:
    """Read the beginning of an answer, be away, read the rest, each over a connection of its own.

    The last event before it left, and the last one there was when it came back.
    """
    async with stage.connected() as client, aclosing(client.subscribe(log_of(run_id))) as events:
        async for event in events:
            seen.events.append(event)
            stage.view.show(event)
            if len(seen.deltas) == _LEAVE_AFTER_DELTAS:
                break
    place = seen.last_seq
    stage.view.note(f"the subscriber is gone after event {place}; the run goes on without it")
    await stayed.until(place + _AWAY_EVENTS)
    meanwhile = stayed.seen.last_seq
    stage.view.note(f"it is back, while event {meanwhile} is stored, and asks for those after {place}")
    async with (
        stage.connected() as client,
        aclosing(client.subscribe(log_of(run_id, after_seq=place))) as events,
    ):
        async for event in events:
            seen.events.append(event)
            stage.view.show(event)
    return place, meanwhile


async def _kill_and_restart(stage: Stage, seen: Seen) -> int:
    """Kill the server, start another one; how the first one ended."""
    killed = stage.server.pid
    exit_status = await stage.kill_server()
    stage.view.note(f"kill -9 {killed}, after event {seen.last_seq}")
    await stage.start_server()
    stage.view.note(f"another server on the same home: process {stage.server.pid}")
    return exit_status


def _check_success(stage: Stage, seen: Seen, claim: str = "the run succeeded") -> None:
    """Said only when it is a claim of its own, or wrong."""
    if claim != "the run succeeded" or not seen.has_succeeded:
        stage.report.check(claim, seen.has_succeeded, found=seen.how_it_ended, expected="succeeded")


def _check_log(stage: Stage, seen: Seen, claim: str) -> None:
    wrong = gaps_in(seen.events)
    stage.report.check(claim, not wrong, found=wrong or f"seq 1 to {seen.last_seq}", expected="seq 1, 2, 3 and so on")


def _commands(seen: Seen) -> list[str]:
    """The command of each call of exec; other calls by name."""
    shown = [(call.name, short_arguments(call.arguments_json, 200)) for call in seen.calls]
    return [text.removeprefix("command=") if name == "exec" else f"{name} {text}" for name, text in shown]


def _short_id(message_id: str) -> str:
    return f"{message_id[:_ID_WIDTH]}..." if len(message_id) > _ID_WIDTH else message_id


def _weekday() -> str:
    return time.strftime("%A", time.gmtime())
