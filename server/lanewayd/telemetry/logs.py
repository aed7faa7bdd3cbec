"""JSON logs on stderr, joined with spans by their ids, and free of what users and models wrote.

Texts of exceptions may quote a prompt, a tool's output or a key: they are left out unless content is captured. What
other libraries log is cut to its first line, because they like to append what they choked on.
"""

import json
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum

from lanewayd.telemetry.spans import current_ids

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)
_OWN = "lanewayd"
_MAX_FOREIGN_CHARS = 500
_MOST_CAUSES = 5
_EXPORTERS = "opentelemetry"
FAULT_INTERVAL_S = 60.0

logger = logging.getLogger(__name__)


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, ids of run and span, then the fields given as `extra`."""

    def __init__(self, *, shows_exception_texts: bool = False) -> None:
        super().__init__()
        self._shows_exception_texts = shows_exception_texts

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end. A traceback is one field."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage() if self._is_own(record) else _first_line(record.getMessage()),
        }
        fields = {name: value for name, value in vars(record).items() if name not in _PLAIN}
        ids = current_ids()
        if fields.get("run_id", ids.get("run_id")) == ids.get("run_id"):  # else the line speaks of another run
            line.update(ids)
        line.update(fields)
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = self._exception(record.exc_info[1])
        return _ENCODER.encode(line)

    def _is_own(self, record: logging.LogRecord) -> bool:
        return self._shows_exception_texts or record.name.partition(".")[0] == _OWN

    def _exception(self, error: BaseException) -> str:
        if self._shows_exception_texts:
            return "".join(traceback.format_exception(error))
        return trace_without_texts(error)


def trace_without_texts(error: BaseException) -> str:
    """Where `error`, its causes and the members of a group were raised: types and code lines, no values."""
    parts: list[str] = []
    waiting: list[tuple[str, BaseException]] = [("", error)]
    while waiting and len(parts) < _MOST_CAUSES:
        relation, seen = waiting.pop(0)
        parts.append(f"{relation}{type(seen).__name__}\n{''.join(traceback.format_tb(seen.__traceback__))}")
        if isinstance(seen, BaseExceptionGroup):
            waiting += [("holding ", member) for member in seen.exceptions]
        cause = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
        if cause is not None:
            waiting.append(("caused by ", cause))
    return "".join(parts)


class ExportFaults(logging.Handler):
    """What the exporters complain of, as one line a minute without their words, which may quote headers and answers."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self._monotonic = monotonic
        self._mutex = threading.Lock()
        self._told_s: float | None = None
        self._untold = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Called on the exporters' threads, and by whoever ends a span while the queue is full."""
        with self._mutex:
            now_s = self._monotonic()
            if self._told_s is not None and now_s - self._told_s < FAULT_INTERVAL_S:
                self._untold += 1
                return
            untold, self._untold, self._told_s = self._untold, 0, now_s
        codes = [argument.name for argument in _arguments(record) if isinstance(argument, Enum)]
        fields = {"source": record.name, "status": codes[0] if codes else "", "similar": untold}
        logger.warning("telemetry is not delivered", extra=fields)


def set_up_logging(level: int = logging.INFO, *, captures_content: bool = False) -> None:
    """Send all logs to stderr as JSON lines; called by app only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(shows_exception_texts=captures_content))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for chatty in ("httpx", "httpcore", "filelock", "aiohttp"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    exporters = logging.getLogger(_EXPORTERS)
    exporters.propagate = False
    exporters.handlers[:] = [ExportFaults()]


def _first_line(text: str) -> str:
    return text.partition("\n")[0][:_MAX_FOREIGN_CHARS]


def _arguments(record: logging.LogRecord) -> tuple[object, ...]:
    return record.args if isinstance(record.args, tuple) else ()
