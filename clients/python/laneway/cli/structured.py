"""`laneway agent --schema`: a schema out of a file, and the answer as JSON."""

import json
import sys
from pathlib import Path

from google.protobuf.struct_pb2 import Struct

from laneway.cli.exits import CliError, ExitCode
from laneway.client import LanewayClient
from laneway.outputs import output_of


def read_schema(file: Path) -> Struct:
    """The JSON Schema in `file`. Raises CliError."""
    try:
        schema = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}", ExitCode.USAGE) from error
    except ValueError as error:
        raise CliError(f"{file} holds no JSON: {error}", ExitCode.USAGE) from error
    if not isinstance(schema, dict):
        raise CliError(f"{file} holds no JSON Schema: an object is needed", ExitCode.USAGE)
    struct = Struct()
    struct.update(schema)
    return struct


async def print_output(client: LanewayClient, run_id: str) -> None:
    """The object that a run has answered, on stdout, sorted by name, as a Struct keeps no order.

    One that is too large for `output` is printed as the model wrote it.
    """
    answer = await client.wait(run_id, timeout_s=0)
    output = output_of(answer)
    if output is not None:
        print(json.dumps(output, ensure_ascii=False, indent=2, sort_keys=True))
        return
    print("laneway: the object is too large to be read back; this is the text of the answer", file=sys.stderr)
    for payload in answer.payloads:
        print(payload.text)
