"""`laneway backup`: a copy of the store, while the server runs or not."""

import json as json_text
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from laneway.cli.exits import CliError, ExitCode
from laneway.cli.options import JsonOption
from laneway.cli.server_parts import ConfigOption, server_package
from laneway.cli.text import safe, size_text


class _Watcher(Protocol):
    def __call__(self, what: str, done: float | None) -> None: ...


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes; attachments go to FILE.blobs.")],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Copy the store to FILE, complete and checked, while the server runs or not.

    FILE appears when it is whole; the server goes on meanwhile.

    To restore: stop the server, move laneway.db, laneway.db-wal and laneway.db-shm out of its home, copy FILE there as
    laneway.db and FILE.blobs, if there is one, as blobs. It is the same store then: do not serve it beside the original
    on one machine.

    Examples:
      laneway backup monday.db
      LANEWAY_HOME=/srv/laneway laneway backup --force --json /backups/laneway.db
    """
    with server_package():
        from lanewayd.wiring.backup import BackupFailed, StartupError, back_up_store
    try:
        with _progress() as on_progress:
            done = back_up_store(file, environ=os.environ, config_path=config, replaces=force, on_progress=on_progress)
    except StartupError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    except FileExistsError as error:
        raise CliError(f"{error}: choose another name, or replace it with --force", ExitCode.USAGE) from error
    except BackupFailed as error:
        raise CliError(str(error), ExitCode.RUN_FAILED) from error
    except KeyboardInterrupt:
        raise CliError("interrupted, nothing was written", ExitCode.NOT_FINISHED) from None
    if json:
        fields = {
            "file": str(done.path),
            "store_id": done.store_id,
            "size_bytes": done.size_bytes,
            "blobs": done.blob_count,
            "blobs_folder": str(done.blobs_path) if done.blobs_path else None,
        }
        print(json_text.dumps(fields, ensure_ascii=False, separators=(",", ":")))
        return
    print(safe(f"{done.path}: {size_text(done.size_bytes)}, checked, store {done.store_id}"))
    if done.blobs_path:
        print(safe(f"{done.blobs_path}: {done.blob_count} attachment{'s' if done.blob_count > 1 else ''}"))


@contextmanager
def _progress() -> Iterator[_Watcher]:
    """A bar on stderr while it lasts, if that is a terminal."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("starting", total=None)

        def on_progress(what: str, done: float | None) -> None:
            bar.update(task, description=what, total=None if done is None else 1.0, completed=done or 0.0)

        yield on_progress
