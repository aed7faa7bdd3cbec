"""The tree of commands; each one has a file of its own."""

from importlib import metadata
from typing import Annotated

import typer

from laneway.cli.abort import abort
from laneway.cli.agent import agent
from laneway.cli.audit import audit
from laneway.cli.backup import backup
from laneway.cli.completion import completion
from laneway.cli.config import config
from laneway.cli.demo.command import demo
from laneway.cli.doctor import doctor
from laneway.cli.help_text import help_of
from laneway.cli.serve import serve
from laneway.cli.sessions import sessions
from laneway.cli.status import status
from laneway.cli.subscribe import subscribe
from laneway.cli.wait import wait

_RUNS, _SERVER, _MORE = "Runs and conversations", "The server", "More"

app = typer.Typer(
    name="laneway",
    help="Run LLM agents behind a typed gRPC contract.",
    epilog="Exit codes: 0 ok, 1 the run failed, 2 usage, 3 deadline or cancelled, 4 no server. "
    "`laneway COMMAND --help` has examples.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"laneway {metadata.version('laneway')}")
        raise typer.Exit


@app.callback()
def _laneway(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """What stands before the name of a command."""


app.command(name="agent", help=help_of(agent), rich_help_panel=_RUNS)(agent)
app.command(name="wait", help=help_of(wait), rich_help_panel=_RUNS)(wait)
app.command(name="subscribe", help=help_of(subscribe), rich_help_panel=_RUNS)(subscribe)
app.command(name="abort", help=help_of(abort), rich_help_panel=_RUNS)(abort)
app.add_typer(sessions, rich_help_panel=_RUNS)
app.command(name="serve", help=help_of(serve), rich_help_panel=_SERVER)(serve)
app.command(name="status", help=help_of(status), rich_help_panel=_SERVER)(status)
app.command(name="audit", help=help_of(audit), rich_help_panel=_SERVER)(audit)
app.command(name="demo", help=help_of(demo), rich_help_panel=_MORE)(demo)
app.command(name="doctor", help=help_of(doctor), rich_help_panel=_SERVER)(doctor)
app.add_typer(config, name="config", rich_help_panel=_SERVER)
app.command(name="backup", help=help_of(backup), rich_help_panel=_SERVER)(backup)
app.command(name="completion", help=help_of(completion), rich_help_panel=_MORE)(completion)
