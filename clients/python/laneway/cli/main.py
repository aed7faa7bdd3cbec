"""Entry point of the command `laneway`: prepares the process, runs a command, turns errors into a line and a code."""

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress

_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""A full disk, a quota, a limit, a device that fails; not a reader that has gone."""


def main() -> None:
    """Run the command line of this process; never returns."""
    # Before grpc is imported: its fork handlers write log lines whenever a child process is started.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        from laneway.cli.commands import app
        from laneway.cli.completion import answer_completions
        from laneway.cli.exits import CliError, ExitCode
    except ModuleNotFoundError as missing:
        sys.exit(f"laneway: the command line is not installed ({missing.name} is missing): pip install 'laneway[cli]'")
    answer_completions()
    try:
        _with_its_output_written(app)
    except CliError as error:
        print(f"laneway: {error}", file=sys.stderr)
        sys.exit(int(error.exit_code))
    except KeyboardInterrupt:
        sys.exit(int(ExitCode.NOT_FINISHED))
    except OSError as error:
        if error.filename is not None or error.errno not in _CANNOT_WRITE:
            raise
        # Files that commands write are their own care: it was the output. What it still holds is thrown away.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"laneway: the output cannot be written: {error.strerror}; what was done stands", file=sys.stderr)
        sys.exit(int(ExitCode.USAGE))


def _with_its_output_written(command: Callable[[], None]) -> None:
    """Call `command`, whichever way it ends; what it has printed is out by then. Raises OSError when that failed."""
    try:
        command()
    finally:
        # A reader that has gone is none: it wanted no more.
        with suppress(BrokenPipeError):
            sys.stdout.flush()


if __name__ == "__main__":
    main()
