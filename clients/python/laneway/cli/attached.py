"""`laneway agent --attach`: a file as it goes with a message."""

import mimetypes
from pathlib import Path

from laneway.cli.exits import CliError, ExitCode
from laneway.v1 import agent_pb2


def read_attachment(file: Path) -> agent_pb2.Attachment:
    """The file under its own name, from which its type is guessed. Raises CliError."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}", ExitCode.USAGE) from error
    media_type, _ = mimetypes.guess_type(file.name)
    return agent_pb2.Attachment(name=file.name, mime_type=media_type or "", data=data)
