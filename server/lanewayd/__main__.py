"""`python -m lanewayd`: the server as a process. Arguments in, exit code out; the rest is app.py."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lanewayd.errors import StartupError

EXIT_REFUSED = 2
"""The service refuses to start: a setting, the home or its lock; the text on stderr says which."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server with command line `arguments` (default: those of this process); the exit code."""
    parser = argparse.ArgumentParser(prog="lanewayd", description="The Laneway server.")
    parser.add_argument("--listen", metavar="ADDRESS", help="HOST:PORT or unix:PATH")
    parser.add_argument("--config", metavar="FILE", type=Path, help="the settings file")
    parser.add_argument("--insecure", action="store_true", help="allow an address that other machines can reach")
    parser.add_argument("--idle-exit", metavar="SECONDS", type=float, help="leave after so long without runs and calls")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="a setting")
    given = parser.parse_args(arguments)
    return serve(
        listen=given.listen,
        config_path=given.config,
        is_insecure=given.insecure,
        idle_exit_s=given.idle_exit,
        assignments=given.set,
    )


def serve(
    *,
    listen: str | None = None,
    config_path: Path | None = None,
    is_insecure: bool = False,
    idle_exit_s: float | None = None,
    assignments: Sequence[str] = (),
) -> int:
    """Read the settings and run the server until it leaves; the exit code. `assignments` are `name=value`."""
    # Before grpc is imported, which the import of app does: its fork handlers would write a line per child process.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    from lanewayd.app import main as run_app  # noqa: PLC0415 - after the line above
    from lanewayd.config import Flags, load_settings  # noqa: PLC0415 - with app

    try:
        flags = Flags.of(listen=listen, is_insecure=is_insecure, assignments=assignments)
        return run_app(load_settings(os.environ, flags, config_path), idle_exit_s=idle_exit_s)
    except StartupError as error:
        print(f"laneway: {error}", file=sys.stderr)  # noqa: T201 - the process's answer; logs begin later
        return EXIT_REFUSED


if __name__ == "__main__":
    sys.exit(main())
