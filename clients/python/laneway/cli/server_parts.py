"""What commands that need the server's package have in common."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from laneway.cli.exits import CliError, ExitCode

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The settings file; else LANEWAY_CONFIG, laneway.toml in home."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting, for example --set drain.timeout_s=60."),
]
ListenOption = Annotated[
    str | None,
    typer.Option("--listen", metavar="ADDRESS", help="HOST:PORT or unix:PATH; else LANEWAY_LISTEN, 127.0.0.1:50551."),
]
InsecureOption = Annotated[bool, typer.Option("--insecure", help="Allow an address that other machines can reach.")]


@contextmanager
def server_package() -> Iterator[None]:
    """Around the import of the server's package: one that is missing is a CliError that says how to get it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise CliError(
            f"the server is not installed ({missing.name} is missing): pip install 'laneway[server]'", ExitCode.USAGE
        ) from None
