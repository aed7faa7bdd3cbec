"""Entry point of the command `laneway`: prepares the process, runs a command, turns errors into a line and a code."""

import os
import sys


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
        app()
    except CliError as error:
        print(f"laneway: {error}", file=sys.stderr)
        sys.exit(int(error.exit_code))
    except KeyboardInterrupt:
        sys.exit(int(ExitCode.NOT_FINISHED))


if __name__ == "__main__":
    main()
