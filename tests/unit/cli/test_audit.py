"""`laneway audit` as a process, against a real server."""

import pytest
from tests.unit.cli.processes import run
from tests.unit.cli.test_sessions import say, values

from laneway.cli.commands import app


async def test_what_was_done_is_shown_the_newest_first_as_far_as_it_passes_the_filters(environ: dict[str, str]) -> None:
    await say(environ)
    shown = await run("audit", environ=environ)
    assert (shown.code, shown.err) == (0, "")
    lines = [line.split() for line in shown.out.splitlines()]
    assert lines[0] == ["time", "what", "status", "by", "where"]
    assert [" ".join(line[2:-2]) for line in lines[1:]] == [
        "run finished succeeded agent",
        "exec finished succeeded agent",
        "exec started started agent",
        "run started started agent",
    ]
    assert {line[-2] for line in lines[1:]} == {"agent:main:s"}
    filters = ["--status", "started", "--session", "s", "--agent", "main", "--after", "1h", "--before", "2999-01-01"]
    cut = await run("audit", "--json", "--limit", "1", *filters, environ=environ)
    assert [(each["action"], each["redaction"]) for each in values(cut.out)] == [
        ("AUDIT_ACTION_TOOL_STARTED", "metadata_only")
    ]
    assert "--limit 0 all" in cut.err
    nothing = await run("audit", "--channel", "mail", "--direction", "inbound", "--run", "run_x", environ=environ)
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "no records\n")
    refused = await run("audit", "--after", "1h", "--before", "2h", environ=environ)
    assert (refused.code, refused.err) == (2, "laneway: before lies before after. (FIELD_INVALID)\n")


@pytest.mark.parametrize("text", ["soon", "-1h", "99999999d", "2026-13-01", "0001-01-01T00:00:00+14:00"])
def test_what_is_no_time_is_said(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        app(["audit", f"--after={text}"])
    assert caught.value.code == 2
    assert "is no time" in capsys.readouterr().err
