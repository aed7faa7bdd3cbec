"""Colours, help and completion: what a person at a terminal gets, and nobody else."""

import asyncio
import re
import shlex
import sys
from pathlib import Path

import pytest
import typer.main
from tests.unit.cli.fake_service import FakeService, terminal, text
from tests.unit.cli.processes import COMMAND, COMMAND_LINE, clean_environ, run
from tests.unit.cli.terminal import AtTerminal

from laneway.cli.commands import app

_NAME = "import sys; sys.argv[0] = 'laneway'; "
"""Completion goes by the name of the command."""
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?3[0-9]m")


def all_commands() -> list[list[str]]:
    """The words of every command, groups too."""
    found: list[list[str]] = []

    def walk(command: object, words: list[str]) -> None:
        found.append(words)
        for name, child in getattr(command, "commands", {}).items():
            walk(child, [*words, name])

    walk(typer.main.get_command(app), [])
    return found


async def test_a_run_has_colours_at_a_terminal_and_none_elsewhere(service: FakeService, address: str) -> None:
    piped = await run("agent", "hello", "--address", address)
    assert "\x1b" not in piped.out
    command = await AtTerminal.start("agent", "hello", "--address", address)
    assert await command.end() == 0
    assert "\x1b[36m> read path=notes.txt" in command.seen
    assert _ESCAPE.sub("", command.seen).replace("\r\n", "\n") == piped.out


async def test_no_color_is_respected(service: FakeService, address: str) -> None:
    command = await AtTerminal.start("agent", "hello", "--address", address, environ={"NO_COLOR": "1"})
    assert await command.end() == 0
    assert "> read path=notes.txt" in command.seen
    assert not _COLOUR.search(command.seen)


async def test_errors_of_usage_have_no_colours_outside_of_a_terminal() -> None:
    ended = await run("agent")
    assert ended.code == 2
    assert "\x1b" not in ended.err


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_every_command_explains_itself_with_examples(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        app([*words, "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    is_group = not words or words in (["sessions"], ["config"])
    assert ("Examples:" in shown) != is_group
    if not is_group:
        assert f"laneway {' '.join(words)}" in shown.partition("Examples:")[2]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_each_shell_has_a_script(shell: str) -> None:
    ended = await run("completion", shell)
    assert (ended.code, ended.err) == (0, "")
    assert "_LANEWAY_COMPLETE=complete_" + shell in ended.out


async def test_another_shell_is_refused() -> None:
    ended = await run("completion", "tcsh")
    assert ended.code == 2
    assert "'bash'" in ended.err


async def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    script = await run("completion", "bash")
    command = tmp_path / "laneway"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c {shlex.quote(_NAME + COMMAND_LINE)} "$@"\n')
    command.chmod(0o700)
    for line, expected in (
        ("laneway ses", ["sessions"]),
        ("laneway sessions exp", ["export"]),
        ("laneway wait --ti", ["--timeout"]),
    ):
        typed = f"COMP_WORDS=({line}); COMP_CWORD={len(line.split()) - 1}"
        ask = f'{typed}; _laneway_completion laneway; printf "%s\\n" "${{COMPREPLY[@]}}"'
        bash = await asyncio.create_subprocess_exec(
            "bash", "--norc", "-c", f"{script.out}\n{ask}",
            stdout=asyncio.subprocess.PIPE,
            env=clean_environ({"PATH": f"{tmp_path}:/usr/bin:/bin"}),
        )  # fmt: skip
        out, _ = await bash.communicate()
        assert out.decode().split() == expected


@pytest.mark.parametrize(
    ("shell", "environ"),
    [
        ("zsh", {"_TYPER_COMPLETE_ARGS": "laneway sessions exp"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "laneway sessions exp", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
async def test_the_command_answers_what_the_other_scripts_ask(shell: str, environ: dict[str, str]) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _NAME + COMMAND_LINE,
        stdout=asyncio.subprocess.PIPE,
        env=clean_environ({**environ, "_LANEWAY_COMPLETE": f"complete_{shell}"}),
    )
    out, _ = await process.communicate()
    assert "export" in out.decode()
    assert "import" not in out.decode().replace("laneway sessions import", "")


async def test_a_reader_that_has_enough_ends_the_command_without_noise(service: FakeService, address: str) -> None:
    service.events = [text(number, "x" * 1000) for number in range(1, 1000)] + [terminal(1000)]
    command = (*COMMAND, "subscribe", "run_1", "--json", "--address", address)
    pipe = await asyncio.create_subprocess_exec(
        "bash", "--norc", "-c", '"$@" | head -n 1', "-", *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=clean_environ(None),
    )  # fmt: skip
    out, err = await pipe.communicate()
    assert (len(out.splitlines()), err) == (1, b"")
