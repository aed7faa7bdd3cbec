"""Log lines: one JSON object each, with ids, without the words of users, models and other libraries."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.context import attach, detach

from lanewayd.telemetry.logs import FAULT_INTERVAL_S, ExportFaults, JsonLines, set_up_logging, trace_without_texts
from lanewayd.telemetry.spans import run_context

CANARY = "canary-5511"


def raised() -> BaseException:
    """An error with a cause, both quoting something."""
    try:
        try:
            raise KeyError(CANARY)
        except KeyError as error:
            raise ValueError(f"cannot use {CANARY}") from error
    except ValueError as error:
        return error


def record(message: str = "run ended", *arguments: object, name: str = "lanewayd.runs", **fields: Any) -> Any:
    error = fields.pop("error", None)
    exc_info = (type(error), error, error.__traceback__) if error is not None else None
    made = logging.LogRecord(name, logging.WARNING, "file.py", 1, message, arguments, exc_info)
    vars(made).update(fields)
    return made


def line(made: logging.LogRecord, **options: Any) -> dict[str, Any]:
    text = JsonLines(**options).format(made)
    assert "\n" not in text
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def test_a_line_has_time_level_logger_message_and_fields() -> None:
    made = line(record("run %s", "ended", state="failed", count=3))
    assert made.pop("time").endswith("+00:00")
    assert made == {
        "level": "warning",
        "logger": "lanewayd.runs",
        "message": "run ended",
        "state": "failed",
        "count": 3,
    }


def test_a_line_is_joined_with_the_run_at_work_unless_it_speaks_of_another() -> None:
    token = attach(run_context(None, "run_1"))
    try:
        assert line(record())["run_id"] == "run_1"
        assert line(record(run_id="run_1"))["run_id"] == "run_1"
        assert line(record(run_id="run_2"))["run_id"] == "run_2"
    finally:
        detach(token)
    assert "run_id" not in line(record())


def test_an_exception_is_shown_by_types_and_places() -> None:
    shown = line(record(error=raised()))["exception"]
    assert CANARY not in shown
    assert shown.startswith("ValueError\n")
    assert "caused by KeyError" in shown
    assert "in raised" in shown


def test_the_members_of_a_group_are_shown_too() -> None:
    trace = trace_without_texts(
        BaseExceptionGroup("several", [ValueError(CANARY), BaseExceptionGroup("more", [raised()])])
    )
    assert trace.count("holding ValueError") == 2
    assert "in raised" in trace
    assert CANARY not in trace


def test_texts_of_exceptions_are_shown_when_content_is_captured() -> None:
    assert f"cannot use {CANARY}" in line(record(error=raised()), shows_exception_texts=True)["exception"]


def test_other_libraries_get_one_line() -> None:
    made = line(record(f"Task exception was never retrieved\nexception=ValueError('{CANARY}')", name="asyncio"))
    assert made["message"] == "Task exception was never retrieved"
    assert len(line(record("x" * 9999, name="grpc"))["message"]) == 500
    assert "\n" in line(record("two\nlines"))["message"]


def test_complaints_of_exporters_come_once_a_minute_without_their_words(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0
    faults = ExportFaults(monotonic=lambda: now_s)
    for _ in range(5):
        faults.emit(record(f"to %s failed: {CANARY}", CANARY, name="opentelemetry.exporter"))
    now_s = FAULT_INTERVAL_S
    faults.emit(record("again", name="opentelemetry.sdk"))
    told = [vars(made) for made in caplog.records]
    assert [(made["source"], made["similar"]) for made in told] == [
        ("opentelemetry.exporter", 0),
        ("opentelemetry.sdk", 4),
    ]
    assert CANARY not in caplog.text


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """Puts the loggers back that set_up_logging changes."""
    root, exporters = logging.getLogger(), logging.getLogger("opentelemetry")
    kept = root.handlers[:], root.level, exporters.handlers[:], exporters.propagate
    levels = {name: logging.getLogger(name).level for name in ("httpx", "httpcore", "filelock", "aiohttp")}
    yield
    root.handlers[:], root.level, exporters.handlers[:], exporters.propagate = kept
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.usefixtures("logging_as_before")
def test_the_process_logs_to_stderr_and_exporters_only_through_their_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    set_up_logging()
    logging.getLogger("lanewayd.app").info("serving", extra={"address": "x"})
    logging.getLogger("httpx").info("chatter")
    logging.getLogger("opentelemetry.exporter.otlp").error("headers %s", CANARY)
    lines = [json.loads(text) for text in stderr.getvalue().splitlines()]
    assert [made["message"] for made in lines] == ["serving", "telemetry is not delivered"]
    assert CANARY not in stderr.getvalue()
