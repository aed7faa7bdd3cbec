"""`laneway config check|show`: what the settings are, and whether a server would take them."""

import json as json_text
import os
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from laneway.cli.exits import CliError, ExitCode
from laneway.cli.help_text import help_of
from laneway.cli.options import JsonOption
from laneway.cli.server_parts import ConfigOption, InsecureOption, ListenOption, SetOption, server_package
from laneway.cli.text import safe

if TYPE_CHECKING:
    from lanewayd.wiring.effective_settings import EffectiveSettings, Row

_PLAIN_WIDTH = 10_000
"""Of the table where nobody looks: a line is a setting."""

config = typer.Typer(
    help="Check the settings, and show what is in effect: default, file, environment variable, flag; later ones win.",
    no_args_is_help=True,
)


def check(
    config: ConfigOption = None,
    listen: ListenOption = None,
    insecure: InsecureOption = False,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Read the settings and keys as the server does. Exit code 2 with the reason if it would refuse them.

    A server takes new settings when it is started.

    Examples:
      laneway config check
      laneway config check --config new.toml && systemctl restart laneway
    """
    with server_package():
        from lanewayd.wiring.effective_settings import Flags, StartupError, read_effective_settings
    try:
        flags = Flags.of(listen=listen, is_insecure=insecure, assignments=set_ or ())
        effective = read_effective_settings(os.environ, flags, config)
    except StartupError as error:
        if json:
            print(_line({"ok": False, "error": str(error)}))
        raise CliError(safe(str(error)), ExitCode.USAGE) from error
    starts = {row.name: row.value for row in effective.starts}
    if json:
        print(_line({"ok": True, **starts, "given": effective.given}))
        return
    place = starts["config"] or f"no settings file ({starts['home']}/laneway.toml does not exist)"
    word = "setting" if effective.given == 1 else "settings"
    print(safe(f"ok: {place}, {effective.given} {word} given"))


def show(
    config: ConfigOption = None,
    listen: ListenOption = None,
    insecure: InsecureOption = False,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Show every setting with its value and where that comes from. Keys are never shown.

    Examples:
      laneway config show
      laneway config show --json | jq '.settings[] | select(.source != "default")'
    """
    with server_package():
        from lanewayd.wiring.effective_settings import Flags, StartupError, read_effective_settings
    try:
        flags = Flags.of(listen=listen, is_insecure=insecure, assignments=set_ or ())
        effective = read_effective_settings(os.environ, flags, config)
    except StartupError as error:
        raise CliError(safe(str(error)), ExitCode.USAGE) from error
    if json:
        starts = {row.name: _fields(row) for row in effective.starts}
        print(_line({**starts, "settings": [{"name": row.name, **_fields(row)} for row in effective.settings]}))
    else:
        _print_table(effective)


def _print_table(effective: "EffectiveSettings") -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PLAIN_WIDTH)
    table = Table(Column("setting", no_wrap=True), "value", Column("source", overflow="fold"), box=None, pad_edge=False)
    for row in (*effective.starts, *effective.settings):
        style = "dim" if row.origin == "default" else ""
        source = f"{row.origin} {row.source}".strip()
        value = safe(_value_text(row.value)) + (f" ({row.note})" if row.note else "")
        table.add_row(Text(safe(row.name), style), Text(value, style, overflow="fold"), Text(safe(source), style))
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        print(line.rstrip())


def _fields(row: "Row") -> dict[str, Any]:
    fields = {"value": row.value, "source": row.origin.value, "from": row.source}
    return fields | ({"note": row.note} if row.note else {})


def _value_text(value: Any) -> str:
    """As it stands in the settings file; `-` for what is unset."""
    return "-" if value is None else json_text.dumps(value, ensure_ascii=False)


def _line(document: dict[str, Any]) -> str:
    return json_text.dumps(document, ensure_ascii=False, separators=(",", ":"))


config.command(name="check", help=help_of(check))(check)
config.command(name="show", help=help_of(show))(show)
