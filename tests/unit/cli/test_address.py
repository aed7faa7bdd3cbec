import socket
from pathlib import Path

import pytest
from tests.unit.cli.fake_service import FakeService

from laneway.cli.address import DEFAULT_ADDRESS, Target, find_target, home_of, is_live, socket_path
from laneway.cli.exits import CliError


def test_the_option_wins_over_the_variable() -> None:
    environ = {"LANEWAY_ADDRESS": "h:1"}
    assert find_target("h:2", environ) == Target("h:2", is_chosen=True)
    assert find_target(None, environ) == Target("h:1", is_chosen=True)


async def test_the_socket_in_home_is_used_while_it_is_live(home: Path, address: str, service: FakeService) -> None:
    assert find_target(None, {"LANEWAY_HOME": str(home)}) == Target(address, is_chosen=False)


def test_a_dead_socket_is_passed_over(home: Path) -> None:
    (home / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(home / "run" / "laneway.sock"))
    assert find_target(None, {"LANEWAY_HOME": str(home)}) == Target(DEFAULT_ADDRESS, is_chosen=False)


def test_a_port_is_live_while_somebody_listens() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        assert is_live(address)
    assert not is_live(address)


def test_the_home_is_absolute() -> None:
    assert home_of({"HOME": "/home/ada"}) == Path("/home/ada/.laneway")
    assert home_of({"HOME": "/home/ada", "LANEWAY_HOME": "~/x"}) == Path("/home/ada/x")
    assert home_of({"LANEWAY_HOME": "x"}) == Path.cwd() / "x"


def test_a_home_too_deep_for_a_socket_is_refused_for_starting_and_passed_over_for_finding() -> None:
    deep = "/" + "x" * 120
    with pytest.raises(CliError, match="shorter LANEWAY_HOME"):
        socket_path(Path(deep))
    assert find_target(None, {"LANEWAY_HOME": deep}).address == DEFAULT_ADDRESS
