"""Where a path argument leads, and opening what is there without being led elsewhere meanwhile (D-22).

Resolving follows links and then checks the workspace. Opening walks the resolved path from a directory handle, one
name at a time and never through a link: whoever swaps a directory for a link in between gets an error, not a file
outside.
"""

import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_UNICODE_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_SHOWN_CHARS = 200


class PathRefused(Exception):
    """The path cannot be used; the text tells the model why. Caught by the tool."""


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """A path without links. `root` is the directory it is confined to, or "/"."""

    path: Path
    root: Path
    shown: str
    """How the model names it."""


def resolve_path(argument: str, *, workspace: Path, home: Path | None, is_confined: bool) -> ResolvedPath:
    """The place that `argument` names: relative to the workspace, absolute, or with `~`; a leading `@` is dropped.

    Unicode spaces count as spaces, unless a file has exactly the name given. Raises PathRefused. Blocking.
    """
    shown = argument[:_SHOWN_CHARS]
    if not argument.strip():
        raise PathRefused("The path is empty.")
    try:
        argument.encode()
    except UnicodeEncodeError:
        raise PathRefused("The path is not valid text.") from None
    if "\x00" in argument:
        raise PathRefused("The path holds a NUL character.")
    try:
        resolved = Path(os.path.realpath(_existing_spelling(argument, workspace, home)))
        root = Path(os.path.realpath(workspace)) if is_confined else Path("/")
    except OSError as error:
        raise PathRefused(f"{shown}: {os.strerror(error.errno or 0)}.") from error
    if not resolved.is_relative_to(root):
        raise PathRefused(f"{shown} is outside the workspace. File tools work inside it only.")
    return ResolvedPath(resolved, root, shown)


def open_parent(resolved: ResolvedPath, *, create: bool) -> tuple[int, str]:
    """A handle of the directory that `resolved` is in, and its last name; the caller closes the handle.

    With `create` missing directories are made. Raises OSError, also where the path leads through a link by now, and
    PathRefused for the root itself.
    """
    names = resolved.path.relative_to(resolved.root).parts
    if not names:
        raise PathRefused(f"{resolved.shown} is a directory.")
    directory_fd = os.open(resolved.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            next_fd = _open_directory(name, directory_fd, create=create)
            os.close(directory_fd)
            directory_fd = next_fd
    except BaseException:
        os.close(directory_fd)
        raise
    return directory_fd, names[-1]


def open_regular(name: str, directory_fd: int, flags: int) -> int:
    """Open a regular file in a directory held open. Raises OSError; PathRefused for anything else than a file.

    Pipes and devices are refused before they could block.
    """
    file_fd = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory_fd)
    mode = os.fstat(file_fd).st_mode
    if stat.S_ISREG(mode):
        return file_fd
    os.close(file_fd)
    kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
    raise PathRefused(f"{name} is {kind}.")


def _open_directory(name: str, directory_fd: int, *, create: bool) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=directory_fd)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):
        # Another call may make it first.
        os.mkdir(name, dir_fd=directory_fd)
    return os.open(name, flags, dir_fd=directory_fd)


def _existing_spelling(argument: str, workspace: Path, home: Path | None) -> Path:
    exact = _absolute(argument, workspace, home)
    usual = _absolute(_UNICODE_SPACES.sub(" ", argument).strip().removeprefix("@"), workspace, home)
    return exact if not os.path.lexists(usual) and os.path.lexists(exact) else usual


def _absolute(argument: str, workspace: Path, home: Path | None) -> Path:
    if home is not None and (argument == "~" or argument.startswith("~/")):
        return home / argument[2:]
    return workspace / argument
