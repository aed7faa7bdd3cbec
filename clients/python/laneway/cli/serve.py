"""`laneway serve`: the server, in this process."""

from pathlib import Path
from typing import Annotated

import typer

from laneway.cli.exits import CliError, ExitCode


def serve(
    listen: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="HOST:PORT or unix:PATH; else LANEWAY_LISTEN, 127.0.0.1:50551."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The settings file; else LANEWAY_CONFIG, laneway.toml in home."),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow an address that other machines can reach.")
    ] = False,
    idle_exit: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, help="Leave after so long without runs and calls.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting, for example --set drain.timeout_s=60."),
    ] = None,
) -> None:
    """Run the server until it is told to leave (SIGTERM, Ctrl-C).

    Settings come from the file, then the environment, then flags. Everything is kept in LANEWAY_HOME (~/.laneway).

    Examples:
      laneway serve
      laneway serve --listen unix:/run/laneway.sock --set drain.timeout_s=60
    """
    try:
        from lanewayd.__main__ import serve as run_server
    except ModuleNotFoundError as missing:
        raise CliError(
            f"the server is not installed ({missing.name} is missing): pip install 'laneway[server]'", ExitCode.USAGE
        ) from None
    exit_code = run_server(
        listen=listen, config_path=config, is_insecure=insecure, idle_exit_s=idle_exit, assignments=set_ or ()
    )
    raise typer.Exit(exit_code)
