"""The arguments of `python -m lanewayd`; the running server is tested as a process in cli/test_real_server.py."""

from pathlib import Path

import pytest

from lanewayd.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--listen", "0.0.0.0:50551"], "--insecure"),
        (["--set", "drain.timeout_s"], "NAME=VALUE"),
        (["--set", "drain.timeout_s=soon"], "flag --set drain.timeout_s"),
        (["--config", "/nonexistent.toml"], "does not exist"),
    ],
)
def test_a_wrong_flag_is_refused_with_2_and_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    part: str,
) -> None:
    monkeypatch.setenv("LANEWAY_HOME", str(tmp_path))
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("laneway: ")
    assert output.err.count("\n") == 1
    assert part in output.err


def test_an_unknown_flag_is_usage() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--nonsense"])
    assert caught.value.code == 2
