"""Files that `laneway agent --attach` sends with a message."""

from pathlib import Path

import pytest
from tests.unit.cli.fake_service import FakeService
from tests.unit.cli.processes import run

from laneway.cli.attached import read_attachment
from laneway.cli.exits import CliError, ExitCode


@pytest.mark.parametrize(
    ("name", "media_type"), [("cat.png", "image/png"), ("notes.txt", "text/plain"), ("strange.zzz", ""), ("none", "")]
)
def test_a_file_goes_under_its_own_name_with_the_type_that_the_name_says(
    tmp_path: Path, name: str, media_type: str
) -> None:
    (tmp_path / name).write_bytes(b"content")
    attachment = read_attachment(tmp_path / name)
    assert (attachment.name, attachment.mime_type, attachment.data) == (name, media_type, b"content")


@pytest.mark.parametrize("name", ["not there", ""])
def test_a_file_that_cannot_be_read_is_a_mistake_of_the_caller(tmp_path: Path, name: str) -> None:
    with pytest.raises(CliError) as caught:
        read_attachment(tmp_path / name)
    assert caught.value.exit_code is ExitCode.USAGE
    assert str(tmp_path) in str(caught.value)


async def test_files_go_with_the_message_in_their_order(service: FakeService, address: str, tmp_path: Path) -> None:
    files = [tmp_path / "b.txt", tmp_path / "a.png"]
    for file in files:
        file.write_bytes(file.name.encode())
    called = await run("agent", "look", "--attach", str(files[0]), "--attach", str(files[1]), "--address", address)
    assert called.code == 0
    (request,) = service.agent_requests
    assert [(each.name, each.data) for each in request.attachments] == [("b.txt", b"b.txt"), ("a.png", b"a.png")]
