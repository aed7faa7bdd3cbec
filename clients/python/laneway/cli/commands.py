"""The tree of commands; each one has a file of its own."""

import typer

from laneway.cli.abort import abort
from laneway.cli.agent import agent
from laneway.cli.backup import backup
from laneway.cli.demo import demo
from laneway.cli.serve import serve
from laneway.cli.status import status
from laneway.cli.wait import wait

app = typer.Typer(
    name="laneway",
    help="Run LLM agents behind a typed gRPC contract. Exit codes: 0 ok, 1 the run failed, 2 usage, 3 deadline or "
    "cancelled, 4 no server.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="serve")(serve)
app.command(name="agent")(agent)
app.command(name="wait")(wait)
app.command(name="abort")(abort)
app.command(name="status")(status)
app.command(name="demo")(demo)
app.command(name="backup")(backup)
