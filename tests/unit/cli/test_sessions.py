"""`laneway sessions` as a process, against a real server."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.processes import clean_environ, end, run, start
from tests.unit.cli.terminal import AtTerminal

from laneway.cli.commands import app
from laneway.cli.connection import Connection
from laneway.v1 import agent_pb2, run_pb2


async def say(environ: dict[str, str], message: str = "hi", session: str = "s", model: str = "tools") -> None:
    """A message and its answer, without a process of its own but the server."""
    async with Connection(None, clean_environ(environ), may_start=True) as connection:
        request = agent_pb2.AgentRequest(message=message, session_key=session, model=f"scripted/{model}")
        accepted = await connection.client.agent(request)
        answer = await connection.client.wait(accepted.run_id)
    assert answer.state == run_pb2.RUN_STATE_SUCCEEDED


def values(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


async def test_sessions_are_listed_the_newest_message_first(environ: dict[str, str]) -> None:
    await say(environ, session="older")
    none_there = await run("sessions", "list", "--json", "--limit", "0", environ=environ)
    assert [session["session_key"] for session in values(none_there.out)] == ["agent:main:older"]
    await say(environ, session="newer")
    listed = await run("sessions", "list", environ=environ)
    assert (listed.code, listed.err) == (0, "")
    head, first, second = (line.split() for line in listed.out.splitlines())
    assert head == ["session", "last", "message", "state", "tokens"]
    assert (first[0], first[-2:]) == ("agent:main:newer", ["succeeded", "330"])
    assert second[0] == "agent:main:older"
    cut = await run("sessions", "list", "--limit", "1", environ=environ)
    assert len(cut.out.splitlines()) == 2
    assert "--limit 0 all" in cut.err


async def test_a_conversation_is_shown_as_people_read_it(environ: dict[str, str]) -> None:
    await say(environ, "What is \x1b[31mred?")
    await run("sessions", "reset", "s", environ=environ)
    await say(environ, "again", model="hello")
    shown = await run("sessions", "show", "s", environ=environ)
    assert (shown.code, shown.err) == (0, "")
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    titles = [line.split()[0] for line in lines if "ent_" in line]
    assert titles == ["user", "assistant", "assistant", "user", "assistant"]
    assert lines[0] == "agent:main:s"
    assert "\x1b" not in shown.out
    assert "What is \N{REPLACEMENT CHARACTER}[31mred?" in shown.out
    call = lines.index("> exec command=seq 9")
    assert lines[call - 1 : call + 8] == [
        "Let me look.", "> exec command=seq 9", "< exec ok", "1", "2", "3", "4", "5", "... 4 more lines",
    ]  # fmt: skip
    assert any(line.startswith("---- reset") for line in lines)
    assert lines[-1] == "You said again"
    full = await run("sessions", "show", "s", "--full", environ=environ)
    assert "    9\n" in full.out
    assert "more lines" not in full.out
    last = await run("sessions", "show", "s", "--last", "2", "--json", environ=environ)
    session, user, answer = values(last.out)
    assert session["session_key"] == "agent:main:s"
    assert user["user"]["content"] == [{"text": "again"}]
    assert answer["assistant"]["content"] == [{"text": "You said again"}]


async def test_what_is_set_for_a_session_is_shown_and_cleared(environ: dict[str, str]) -> None:
    await say(environ)
    given = ["--model", "scripted/hello", "--verbose", "full", "--reasoning", "off", "--no-trace", "--pin"]
    done = await run("sessions", "set", "s", *given, "--label", "Travel \x1bplans", environ=environ)
    line = (
        "model scripted/hello | verbose full | reasoning off | trace off | "
        "label Travel \N{REPLACEMENT CHARACTER}plans | pinned"
    )
    assert (done.code, done.out, done.err) == (0, f"{line}\n", "")
    assert line in (await run("sessions", "show", "s", environ=environ)).out
    clear = ["--clear", "model", "--clear", "label", "--archive", "--no-pin", "--json"]
    [session] = values((await run("sessions", "set", "s", *clear, environ=environ)).out)
    assert (session["model"], session["label"], session["archived"], session["pinned"]) == ("", "", True, False)
    assert session["verbose"] == "VERBOSITY_FULL"
    refused = await run("sessions", "set", "s", "--model", "nobody/m", environ=environ)
    assert refused.code != 0
    assert "unknown provider" in refused.err
    nothing = await run("sessions", "set", "s", environ=environ)
    assert (nothing.code, "--label" in nothing.err) == (2, True)


async def test_an_export_that_is_imported_goes_on_as_the_same_conversation(
    environ: dict[str, str], tmp_path: Path
) -> None:
    await say(environ)
    file = tmp_path / "s.jsonl"
    written = await run("sessions", "export", "s", str(file), environ=environ)
    assert written.code == 0
    assert written.out.startswith(f"{file}: 4 entries, ")
    assert file.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == [file]
    piped = await run("sessions", "export", "s", environ=environ)
    assert piped.out == file.read_text()
    assert [line["type"] for line in values(piped.out)] == ["session", *["message"] * 4, "custom"]
    imported = await run("sessions", "import", str(file), "--session", "copy", environ=environ)
    assert (imported.code, imported.err) == (0, "")
    assert imported.out.startswith("agent:main:copy: 4 entries; go on with: laneway agent")
    from_pipe = await run("sessions", "import", "--session", "other", "--json", environ=environ, stdin=piped.out)
    assert (from_pipe.code, json.loads(from_pipe.out)["entries"]) == (0, 4)
    await say(environ, "more", session="copy", model="hello")
    shown = await run("sessions", "show", "copy", environ=environ)
    assert "There are nine." in shown.out
    assert shown.out.endswith("You said more\n")


async def test_what_cannot_be_written_or_read_is_said_and_nothing_is_left(
    environ: dict[str, str], tmp_path: Path
) -> None:
    await say(environ)
    file = tmp_path / "s.jsonl"
    file.write_text("mine")
    refused = await run("sessions", "export", "s", str(file), environ=environ)
    assert (refused.code, file.read_text()) == (2, "mine")
    assert "--force" in refused.err
    unknown = await run("sessions", "export", "none", str(file), "--force", environ=environ)
    assert (unknown.code, file.read_text()) == (2, "mine")
    assert "SESSION_NOT_FOUND" in unknown.err
    nowhere = await run("sessions", "export", "s", str(tmp_path / "no" / "s.jsonl"), environ=environ)
    assert (nowhere.code, "cannot be written" in nowhere.err) == (2, True)
    replaced = await run("sessions", "export", "s", str(file), "--force", "--json", environ=environ)
    assert json.loads(replaced.out) == {"file": str(file), "entries": 4, "size_bytes": file.stat().st_size}
    assert list(tmp_path.iterdir()) == [file]

    whole = file.read_text()
    file.write_text("".join(whole.splitlines(keepends=True)[:3]))
    cut = await run("sessions", "import", str(file), "--session", "cut", environ=environ)
    assert (cut.code, "line 4: the last line is missing: the export was cut" in cut.err) == (2, True)
    assert "nothing was imported" in cut.err
    file.write_text(whole)
    taken = await run("sessions", "import", str(file), environ=environ)
    assert taken.code == 2
    assert f"laneway sessions import {file} --session ANOTHER-KEY" in taken.err
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], "{", *lines[2:]]))
    bad = await run("sessions", "import", str(file), "--session", "copy", environ=environ)
    assert bad.code == 2
    assert f"{file}: line 3: it is no JSON" in bad.err
    assert "nothing was imported" in bad.err
    file.write_bytes(b"\x1f\x8b\x08\xff")
    packed = await run("sessions", "import", str(file), environ=environ)
    assert (packed.code, "line 1 is no UTF-8 text" in packed.err) == (2, True)
    missing = await run("sessions", "import", str(tmp_path / "none"), environ=environ)
    assert (missing.code, "No such file" in missing.err) == (2, True)
    listed = await run("sessions", "list", "--json", environ=environ)
    assert [session["session_key"] for session in values(listed.out)] == ["agent:main:s"]


async def test_a_session_at_work_is_changed_by_force_only(environ: dict[str, str]) -> None:
    for act in ("reset", "delete"):
        agent = await start("agent", "x", "--model", "scripted/endless", "--session", "s", environ=environ)
        assert agent.stdout is not None
        await agent.stdout.readuntil(b"tick")
        refused = await run("sessions", act, "s", "--yes", environ=environ)
        assert refused.code == 2
        assert "SESSION_ACTIVE" in refused.err
        assert "--force" in refused.err
        forced = await run("sessions", act, "s", "--yes", "--force", environ=environ)
        assert forced.code == 0
        assert " aborted\n" in forced.out
        assert (await end(agent)).code == 3
    gone = await run("sessions", "show", "s", environ=environ)
    assert (gone.code, "SESSION_NOT_FOUND" in gone.err) == (2, True)


async def test_a_person_is_asked_before_something_is_removed(environ: dict[str, str]) -> None:
    await say(environ)
    for answer, code in (("n\n", 3), ("\n", 3), ("y\n", 0)):
        command = await AtTerminal.start("sessions", "delete", "s", environ=environ)
        await command.until("Delete agent:main:s? [y/N]: ")
        command.type(answer)
        assert await command.end() == code
        assert ("nothing was changed" in command.seen) == (code == 3)
    deleted = await run("sessions", "list", environ=environ)
    assert (deleted.code, deleted.out) == (0, "")
    assert "no sessions yet" in deleted.err


async def test_who_is_sure_or_no_person_is_not_asked(environ: dict[str, str]) -> None:
    await say(environ)
    command = await AtTerminal.start("sessions", "reset", "s", "--yes", environ=environ)
    assert await command.end() == 0
    assert command.seen == "s begins anew\r\n"
    piped = await run("sessions", "delete", "s", "--json", environ=environ)
    assert (piped.code, json.loads(piped.out)) == (0, {"aborted_run_ids": []})


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["show", "s"], ["export", "s"], ["reset", "s", "--yes"], ["delete", "s", "--yes"]],
    ids=lambda arguments: arguments[0],
)
async def test_without_a_server_they_end_with_4(home: Path, arguments: list[str]) -> None:
    ended = await run("sessions", *arguments, "--address", f"unix:{home}/none.sock")
    assert (ended.code, ended.out) == (4, "")
    assert "start one with `laneway serve`" in ended.err


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["show"], ["list", "--limit", "-1"], ["delete"]])
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        app(["sessions", *arguments])
    assert caught.value.code == 2


async def test_archived_sessions_say_so_and_are_left_out_when_asked(environ: dict[str, str]) -> None:
    await say(environ, session="old")
    await say(environ, session="new")
    await run("sessions", "set", "old", "--archive", environ=environ)
    listed = await run("sessions", "list", environ=environ)
    assert [line.split()[-2:] for line in listed.out.splitlines()[1:]] == [["succeeded", "330"], ["archived", "330"]]
    for option, key in (("--archived", "agent:main:old"), ("--not-archived", "agent:main:new")):
        [session] = values((await run("sessions", "list", option, "--json", environ=environ)).out)
        assert session["session_key"] == key
    refused = await run("agent", "hi", "--session", "old", "--model", "scripted/hello", environ=environ)
    assert (refused.code, "--no-archive" in refused.err) == (2, True)


async def test_a_session_is_forked_at_an_entry_or_where_it_stands(environ: dict[str, str]) -> None:
    await say(environ)
    [_, user, *rest] = values((await run("sessions", "show", "s", "--json", environ=environ)).out)
    done = await run("sessions", "fork", "s", "--session", "f", "--entry", user["entry_id"], environ=environ)
    assert (done.code, done.out) == (0, "agent:main:f with 1 entry of agent:main:s\n")
    again = await run("sessions", "fork", "s", "--session", "f", environ=environ)
    assert (again.code, again.out) == (0, "agent:main:f is there already\n")
    [answer] = values((await run("sessions", "fork", "s", "--label", "mine", "--json", environ=environ)).out)
    assert (answer["entries"], answer["session"]["label"]) == (1 + len(rest), "mine")
    taken = await run("sessions", "fork", "f", "--session", "s", environ=environ)
    assert (taken.code, "another key" in taken.err) == (2, True)
