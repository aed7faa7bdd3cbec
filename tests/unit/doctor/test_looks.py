"""Looks at the machine: real folders, sockets and locks, and checks that keep their limits."""

import asyncio
import fcntl
import json
import os
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from lanewayd.doctor.findings import Check, Finding, Level, in_thread, run_checks
from lanewayd.doctor.home import find_holder, look_at_clock, look_at_disk, look_at_home, look_at_lock
from lanewayd.doctor.listening import look_at_address
from lanewayd.doctor.processes import lock_holder, process_of, tcp_listener

HUGE = 2**60


def levels(findings: Sequence[Finding]) -> list[Level]:
    return [finding.level for finding in findings]


async def test_a_check_that_hangs_is_a_finding_and_holds_up_nobody() -> None:
    hold = threading.Event()

    async def answer() -> Sequence[Finding]:
        return [Finding("quick", Level.OK, "done")]

    def hang() -> Sequence[Finding]:
        hold.wait()
        return ()

    hanging = Check("slow", lambda: in_thread(hang), limit_s=0.05)
    findings = await run_checks([hanging, Check("quick", answer)])
    hold.set()
    assert [(finding.check, finding.level) for finding in findings] == [("slow", Level.FAIL), ("quick", Level.OK)]
    assert findings[0].text == "no answer within 0.05 s"


async def test_what_the_system_refuses_to_one_check_is_a_finding_and_the_others_are_done() -> None:
    async def refused() -> Sequence[Finding]:
        raise PermissionError(13, "Permission denied", "/secret")

    async def answer() -> Sequence[Finding]:
        return [Finding("other", Level.OK, "done")]

    [finding, other] = await run_checks([Check("disk", refused), Check("other", answer)])
    assert (finding.check, finding.level, other.level) == ("disk", Level.FAIL, Level.OK)
    assert "/secret" in finding.text


async def test_what_a_thread_raises_reaches_who_waits() -> None:
    def fail() -> None:
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        await in_thread(fail)


def test_a_home_that_links_to_nowhere_is_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.symlink_to(tmp_path / "gone")
    [finding] = look_at_home(home)
    assert (finding.level, "is a link to" in finding.text) == (Level.FAIL, True)
    assert levels(look_at_disk([home], min_free_bytes=0)) == [Level.OK], "of the disk that the link is on"


def test_a_home_in_use_by_others_is_told_and_one_to_be_made_is_fine(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert levels(look_at_home(home)) == [Level.OK]
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    [finding] = look_at_home(home)
    assert (finding.level, f"chmod 700 {home}" in finding.advice) == (Level.WARN, True)
    home.chmod(0o700)
    assert levels(look_at_home(home)) == [Level.OK]
    (home / "run").touch()
    [finding] = look_at_home(home)
    assert (finding.level, f"{home}/run is a file" in finding.text) == (Level.FAIL, True)


def test_the_disk_is_judged_by_the_room_that_is_asked_for(tmp_path: Path) -> None:
    free_bytes = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    for min_free_bytes, level in ((1, Level.OK), (free_bytes // 2, Level.WARN), (HUGE, Level.FAIL)):
        findings = look_at_disk([tmp_path / "not" / "there", tmp_path], min_free_bytes=min_free_bytes)
        assert levels(findings) == [level], "once for both places: they are on one file system"


def test_files_of_the_future_are_counted_and_links_are_not_followed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (4_000_000_000, 4_000_000_000))
    (tmp_path / "link").symlink_to(tmp_path / "a")
    [finding] = look_at_clock(tmp_path)
    assert finding.level is Level.WARN
    assert "days in the future, and 1 more" in finding.text
    assert look_at_clock(tmp_path / "none") == []


def test_a_lock_has_a_holder_while_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "server.lock"
    assert find_holder(tmp_path) is None
    with path.open("w") as lock:
        assert lock_holder(path) is None
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = {"pid": os.getpid(), "host": "here", "address": "unix:/s"}
        (tmp_path / "server.json").write_text(json.dumps(note))
        holder = find_holder(tmp_path)
        assert holder is not None
        assert holder.process == process_of(os.getpid())
        assert holder.address == "unix:/s"
        assert levels(look_at_lock(tmp_path, holder, answers=True)) == [Level.OK]
        assert levels(look_at_lock(tmp_path, holder, answers=False)) == [Level.FAIL]
    assert find_holder(tmp_path) is None, "the note of a killed server holds nothing"
    (tmp_path / "server.json").write_text("[]")
    assert find_holder(tmp_path) is None


def test_a_free_address_is_free_and_stays_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert tcp_listener(port) == process_of(os.getpid())
        [finding] = look_at_address(f"127.0.0.1:{port}", own_address="", is_starting=False)
        assert finding.level is Level.FAIL
        own = look_at_address(f"127.0.0.1:{port}", own_address=f"127.0.0.1:{port}", is_starting=True)
        assert levels(own) == [Level.OK]
    for _ in range(2):
        assert levels(look_at_address(f"127.0.0.1:{port}", own_address="", is_starting=False)) == [Level.OK]
    assert look_at_address(f"127.0.0.1:{port}", own_address="", is_starting=True) == []
    assert levels(look_at_address("127.0.0.1:0", own_address="", is_starting=False)) == [Level.OK]


def test_an_address_of_another_machine_cannot_be_listened_on() -> None:
    [finding] = look_at_address("192.0.2.1:50551", own_address="", is_starting=False)
    assert (finding.level, "cannot listen on 192.0.2.1" in finding.text) == (Level.FAIL, True)


def test_a_bound_port_nobody_listens_on_is_in_use() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        [finding] = look_at_address(f"127.0.0.1:{port}", own_address="", is_starting=False)
    assert (finding.level, "is in use by" in finding.text) == (Level.FAIL, True)


def test_sockets_are_judged_like_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = "unix:s"
    assert levels(look_at_address(place, own_address="", is_starting=False)) == [Level.OK]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place.removeprefix("unix:"))
        listener.listen()
        [finding] = look_at_address(place, own_address="", is_starting=False)
        assert f"in use by pid {os.getpid()}" in finding.text
    assert levels(look_at_address(place, own_address="", is_starting=False)) == [Level.OK], "what a killed server left"
    (tmp_path / "text").touch()
    assert levels(look_at_address(f"unix:{tmp_path}/text", own_address="", is_starting=False)) == [Level.FAIL]
    assert levels(look_at_address(f"unix:{tmp_path}/none/s", own_address="", is_starting=False)) == [Level.FAIL]


async def test_a_look_that_is_cancelled_is_left_behind() -> None:
    hold = threading.Event()
    task = asyncio.create_task(in_thread(hold.wait))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    hold.set()
