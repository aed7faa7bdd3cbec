"""Makes values fit for a terminal: safe, short, readable. Pure."""

import json
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from laneway.v1 import event_pb2, run_pb2

_UNSAFE = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
_UNSAFE[ord("\r")] = ""
_SIZE_UNITS = ("bytes", "KiB", "MiB", "GiB")
_OUTCOMES = {
    event_pb2.TOOL_OUTCOME_OK: ("ok", "green"),
    event_pb2.TOOL_OUTCOME_ERROR: ("error", "red"),
    event_pb2.TOOL_OUTCOME_BLOCKED: ("blocked", "red"),
    event_pb2.TOOL_OUTCOME_SKIPPED: ("skipped", "yellow"),
    event_pb2.TOOL_OUTCOME_ABORTED: ("aborted", "yellow"),
    event_pb2.TOOL_OUTCOME_UNKNOWN: ("outcome unknown: the server was killed while it ran", "red"),
}
_STATE_STYLES = {run_pb2.RUN_STATE_SUCCEEDED: "green", run_pb2.RUN_STATE_FAILED: "red"}
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def safe(text: str) -> str:
    """`text` without the control characters that could move the cursor or rename the window."""
    return text.translate(_UNSAFE)


def one_line(text: str, width: int) -> str:
    """`text` in one line of at most `width` characters."""
    line = " ".join(safe(text).split())
    return line if len(line) <= width else line[: width - 3] + "..."


def excerpt(text: str, lines: int, width: int) -> list[str]:
    """The first lines of `text`, each cut to `width`, and a line that says how many are left out."""
    rows = safe(text).rstrip("\n").split("\n") if text else []
    shown = [row if len(row) <= width else row[: width - 3] + "..." for row in rows[:lines]]
    left_out = len(rows) - len(shown)
    return [*shown, f"... {left_out} more line{'s' if left_out > 1 else ''}"] if left_out > 0 else shown


def short_arguments(arguments_json: str, width: int) -> str:
    """The arguments of a tool call as `name=value`, in one line."""
    try:
        arguments = json.loads(arguments_json) if arguments_json else {}
    except ValueError:
        arguments = arguments_json
    if not isinstance(arguments, dict):
        return one_line(str(arguments), width)
    pairs = (f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in arguments.items())
    return one_line(" ".join(pairs), width)


def seconds_text(seconds: float) -> str:
    """`12 ms`, `3.4 s`, `2 min 5 s`, `1 h 4 min`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def size_text(size_bytes: float) -> str:
    """`12 bytes`, `3.4 MiB`."""
    for unit in _SIZE_UNITS[:-1]:
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}" if unit == "bytes" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} {_SIZE_UNITS[-1]}"


def duration_text(duration: Duration) -> str:
    """As seconds_text."""
    return seconds_text(duration.seconds + duration.nanos / 1e9)


def parse_duration(text: str) -> Duration:
    """`90`, `1.5s`, `10m`, `2h`, `1d` as a Duration. Raises ValueError."""
    number = text.strip().lower()
    unit_s = _UNITS_S.get(number[-1:], 0)
    seconds = float(number[:-1] if unit_s else number) * (unit_s or 1)
    if not 0 <= seconds < 1e11:
        raise ValueError("a duration is 0 or more seconds")
    duration = Duration()
    duration.FromTimedelta(timedelta(seconds=seconds))
    return duration


def usage_text(usage: run_pb2.Usage) -> str:
    """Tokens in words, and what they cost unless they were free or their price is not known."""
    words = f"{usage.input_tokens} tokens in, {usage.output_tokens} out"
    if usage.cache_read_tokens:
        words += f", {usage.cache_read_tokens} from cache"
    if usage.reasoning_tokens:
        words += f", {usage.reasoning_tokens} reasoning"
    if usage.cost_usd > 0:
        words += f", {usd_text(usage.cost_usd)}"
    return words + " (not all reported)" if usage.unavailable else words


_LEAST_USD = 0.000001


def usd_text(usd: float) -> str:
    """`$12.35`, `$0.0042`: two digits behind the point, for less than a dollar up to six."""
    if usd >= 1:
        return f"${usd:,.2f}"
    if usd < _LEAST_USD:
        return f"less than ${_LEAST_USD:.6f}"
    whole, _, rest = f"{usd:.6f}".partition(".")
    return f"${whole}.{rest.rstrip('0').ljust(2, '0')}"


def error_text(error: run_pb2.RunError) -> str:
    """Reason, text, and who failed."""
    who = "/".join(part for part in (error.provider, error.model) if part)
    details = ", ".join(part for part in (who, f"HTTP {error.http_status}" if error.http_status else "") if part)
    return safe(f"{error.reason}: {error.message}" + (f" ({details})" if details else ""))


def state_text(state: run_pb2.RunState) -> str:
    """`succeeded`, `timed out` ..."""
    return run_pb2.RunState.Name(state).removeprefix("RUN_STATE_").lower().replace("_", " ")


def state_style(state: run_pb2.RunState) -> str:
    """The colour of a state in which a run has ended."""
    return _STATE_STYLES.get(state, "yellow")


def outcome_text(outcome: event_pb2.ToolOutcome) -> tuple[str, str]:
    """How a tool call ended, and its colour."""
    return _OUTCOMES.get(outcome, ("ended", ""))


def json_line(message: Message, *, all_fields: bool = False) -> str:
    """A message as one line of JSON with the names of the contract. `all_fields`: also those that are 0 or empty."""
    document = MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=all_fields)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
