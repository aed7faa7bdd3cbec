"""`laneway sessions export` and `import`: conversations as files of JSON lines."""

import json as json_text
import os
import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.console import Console
from rich.status import Status

from laneway.cli.connection import Connection
from laneway.cli.exits import CliError, ExitCode, call_failed
from laneway.cli.options import AddressOption, JsonOption, KeyArgument, run_async
from laneway.cli.text import json_line, safe, size_text
from laneway.errors import InvalidRequest
from laneway.v1 import session_pb2

_STDIO = "-"


def export(
    key: KeyArgument,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; - is stdout.")] = _STDIO,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    address: AddressOption = None,
    json: Annotated[bool, typer.Option("--json", help="Say as JSON what was written to FILE.")] = False,
) -> None:
    """Write a session as JSON lines to FILE or to stdout.

    The first line is a header, then comes one entry per line, and last the end. FILE appears when it is complete.
    `laneway sessions import` makes a session of it again.

    Examples:
      laneway sessions export demo demo.jsonl
      laneway sessions export demo | gzip > demo.jsonl.gz
    """
    if file == _STDIO:
        run_async(_export(key, sys.stdout, address))
        sys.stdout.flush()
        return
    path = Path(file)
    with _new_file(path, replaces=force) as out:
        entries = run_async(_export(key, out, address))
    size_bytes = path.stat().st_size
    if json:
        fields = {"file": str(path), "entries": entries, "size_bytes": size_bytes}
        print(json_text.dumps(fields, ensure_ascii=False, separators=(",", ":")))
    else:
        print(safe(f"{path}: {_entries_text(entries)}, {size_text(size_bytes)}"))


async def _export(key: str, out: IO[str], address: str | None) -> int:
    """Write all lines; how many of them were entries."""
    count = -1
    with _progress("exporting") as status:
        async with (
            Connection(address, os.environ) as connection,
            aclosing(connection.client.sessions.export(key)) as lines,
        ):
            async for line in lines:
                out.write(line + "\n")
                status.update(f"exporting: {_entries_text(max(count, 0))}")
                count += 1
    return count - 1


@contextmanager
def _new_file(path: Path, *, replaces: bool) -> Iterator[IO[str]]:
    """A file that appears under its name when it was written to its end, and not at all else. Raises CliError."""
    if path.exists() and not replaces:
        raise CliError(f"{path} exists: choose another name, or replace it with --force", ExitCode.USAGE)
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as out:
            part.chmod(0o600)  # conversations are nobody else's business
            yield out
        part.replace(path)
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}", ExitCode.USAGE) from error
    finally:
        with suppress(OSError):
            part.unlink()


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `sessions export` wrote; - is stdin.")] = _STDIO,
    session: Annotated[str, typer.Option(metavar="KEY", help="The key of the new session; else the one it had.")] = "",
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """Make a new session of an export, from FILE or from stdin.

    All of it is stored, or nothing if a line is bad. The next message of the session goes on with that conversation. A
    key that is taken is refused.

    Examples:
      laneway sessions import demo.jsonl --session copy
      zcat demo.jsonl.gz | laneway sessions import
    """
    if file == _STDIO and sys.stdin.isatty():
        raise typer.BadParameter("give a FILE, or pipe an export into this command")
    answer = run_async(_import(file, session, address))
    key = safe(answer.session.session_key)
    if json:
        print(json_line(answer, all_fields=True))
    else:
        print(f"{key}: {_entries_text(answer.entries)}; go on with: laneway agent MESSAGE --session {key}")


async def _import(file: str, session: str, address: str | None) -> session_pb2.ImportSessionResponse:
    with _open(file) as source, _progress(f"importing {file}") as status:
        async with Connection(address, os.environ) as connection:
            try:
                return await connection.client.sessions.import_lines(_lines(source, file, status), session_key=session)
            except InvalidRequest as error:
                refusal = call_failed(error)
                if error.field != "session_key" or error.reason != "FIELD_INVALID":
                    raise CliError(f"{file}: {refusal}\n  nothing was imported", ExitCode.USAGE) from error
                advice = f"laneway sessions import {file} --session ANOTHER-KEY"
                raise CliError(f"{refusal}\n  {advice}", ExitCode.USAGE) from error


def _open(file: str) -> IO[bytes]:
    if file == _STDIO:
        return sys.stdin.buffer
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}", ExitCode.USAGE) from error


def _lines(source: IO[bytes], file: str, status: Status) -> Iterator[str]:
    """The lines without their ends. Raises CliError for bytes that are no text, and for what cannot be read."""
    number = 0
    try:
        # Not text mode: it would end lines at other characters too.
        for number, line in enumerate(source, start=1):
            status.update(f"importing {file}: {number:,} lines")
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise CliError(
            f"{file}: line {number} is no UTF-8 text; is it compressed? Nothing was imported", ExitCode.USAGE
        ) from None
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}", ExitCode.USAGE) from error


@contextmanager
def _progress(text: str) -> Iterator[Status]:
    """A line on stderr while it lasts, if that is a terminal."""
    console = Console(stderr=True)
    status = Status(text, console=console)
    if not console.is_terminal or sys.stdout.isatty():
        yield status  # never started: nobody sees it, or the lines themselves are seen
        return
    with status:
        yield status


def _entries_text(count: int) -> str:
    return f"{count:,} {'entry' if count == 1 else 'entries'}"
