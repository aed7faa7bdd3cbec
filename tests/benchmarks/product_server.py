"""The real server with a tool `noop` that does nothing: `python -m tests.benchmarks.product_server`, settings from the
environment as for `python -m lanewayd`."""

import os
import sys
from typing import Any

from lanewayd.messages import ToolSpec
from lanewayd.tools.interface import ToolContext, ToolResult


class NoopTool:
    """Implements Tool. Not idempotent, as most tools are not: its launch is made durable first."""

    is_idempotent = False
    is_sequential = False
    spec = ToolSpec("noop", "Does nothing.", {"type": "object", "properties": {}})

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult("ok")


def main() -> int:
    """Run the server until it leaves; the exit code."""
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    from lanewayd.app import Seams  # noqa: PLC0415 - as in lanewayd.__main__
    from lanewayd.app import main as run_app  # noqa: PLC0415
    from lanewayd.config import Flags, load_settings  # noqa: PLC0415

    return run_app(load_settings(os.environ, Flags()), seams=Seams(more_tools=(NoopTool(),)))


if __name__ == "__main__":
    sys.exit(main())
