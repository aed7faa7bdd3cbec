"""Fills what a server keeps up to a limit, so that what grows afterwards is lost: pages of the database (16 MiB for the
writer, 4 MiB for readers), conversations that ran lately."""

import asyncio

from tests.soak.inspected_server import InspectedServer, SoakFailed

from laneway.v1 import run_pb2
from lanewayd.runs.contexts import MAX_SESSIONS

PAGES_BYTES = 24 * 1024 * 1024
_PIECE = "x" * 3000
"""An event is one page: longer ones are read past the cache."""
_PIECES = 300
AT_ONCE = 16
KEPT_OBJECTS = dict.fromkeys(
    (
        "lanewayd.runs.contexts._Kept",
        "lanewayd.runs.contexts.Context",
        "lanewayd.messages.UserMessage",
        "lanewayd.messages.AssistantMessage",
        "lanewayd.messages.Text",
        "lanewayd.messages.Usage",
        "lanewayd.messages.ToolCall",
        "lanewayd.messages.ToolResultMessage",
    ),
    MAX_SESSIONS,
)
"""Class -> how many of it the conversations at hand may have, of sessions that were used once."""
KEPT_OBJECTS["lanewayd.audit_records.AuditRecord"] = 100  # of the ledger's last batch
SCRIPTS = {
    "filling": f"turns:\n  - text: {_PIECE}\n    repeat: {_PIECES}\n",
    "brief": "turns:\n  - text: hello\n",
}


async def fill_caches(server: InspectedServer) -> None:
    """The scripts of this module must be known to the server."""
    large = ["filling"] * (PAGES_BYTES // (len(_PIECE) * _PIECES))
    models = iter([*large, *["brief"] * (MAX_SESSIONS + AT_ONCE)])

    async def work() -> None:
        for model in models:
            run_id = (await server.accept("fill", model=f"scripted/{model}")).run_id
            waited = await server.wait(run_id)
            if waited.state != run_pb2.RUN_STATE_SUCCEEDED:
                raise SoakFailed(f"a run that fills caches ended as {waited}")
            # Behind the end they come from the store, and fill the pages of readers.
            await server.events(run_id)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
    await server.idle()
