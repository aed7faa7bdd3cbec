"""Log lines of this process as the server would write them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from lanewayd.telemetry.logs import JsonLines


@contextmanager
def kept_log_lines() -> Iterator[list[str]]:
    """Every line that is logged inside the block, of all levels."""
    lines: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    keeper, root = Keeper(), logging.getLogger()
    keeper.setFormatter(JsonLines())
    level = root.level
    root.addHandler(keeper)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.removeHandler(keeper)
        root.setLevel(level)
