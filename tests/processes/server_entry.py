"""The server as a process with the tools and failpoints that tests need: `python -m tests.processes.server_entry`.

Settings and variables are those of `python -m lanewayd`; what is added comes as JSON in SERVER_ENTRY (see `Extras`).
"""

import json
import os
import sqlite3
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.processes.failpoints import Failpoint

from lanewayd.errors import StartupError

VARIABLE = "SERVER_ENTRY"
_EXIT_REFUSED = 2


@dataclass(frozen=True, slots=True)
class Extras:
    """What a test server has beside the real one."""

    ledger: str = ""
    """Path of the ledger; its tools write to it."""
    failpoint: Failpoint | None = None
    is_synced: bool = True
    """False: `PRAGMA synchronous=OFF`."""
    max_pages: int = 0
    """Limit of the database's size in pages; 0 = none. A full disk."""
    is_inspected: bool = False
    """It answers on stdout what it holds, whenever a line comes on stdin."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Extras":
        fields: dict[str, Any] = json.loads(text)
        failpoint = fields.pop("failpoint")
        return cls(**fields, failpoint=Failpoint(**failpoint) if failpoint else None)


def _small_connection(max_pages: int) -> type[sqlite3.Connection]:
    class SmallConnection(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.execute(f"PRAGMA max_page_count = {max_pages}")

    return SmallConnection


def main() -> int:
    """Run the server until it leaves; the exit code."""
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    from tests.processes.failpoints import FailpointGate  # noqa: PLC0415 - as in lanewayd.__main__
    from tests.processes.ledger_tools import ledger_tools  # noqa: PLC0415
    from tests.soak.inspector import start_inspector  # noqa: PLC0415

    from lanewayd.app import Seams  # noqa: PLC0415
    from lanewayd.app import main as run_app  # noqa: PLC0415
    from lanewayd.config import Flags, load_settings  # noqa: PLC0415
    from lanewayd.store.opening import OpenOptions  # noqa: PLC0415

    extras = Extras.from_json(os.environ.pop(VARIABLE))
    options = OpenOptions(
        synchronous=extras.is_synced,
        connection_class=_small_connection(extras.max_pages) if extras.max_pages else sqlite3.Connection,
    )
    seams = Seams(
        commit_gate=FailpointGate(extras.failpoint) if extras.failpoint else None,
        more_tools=ledger_tools(Path(extras.ledger)) if extras.ledger else (),
        store_options=options,
    )
    if extras.is_inspected:
        start_inspector()
    try:
        return run_app(load_settings(os.environ, Flags()), seams=seams)
    except StartupError as error:
        print(f"laneway: {error}", file=sys.stderr)
        return _EXIT_REFUSED


if __name__ == "__main__":
    sys.exit(main())
