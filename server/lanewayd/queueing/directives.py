"""What a message says to the service and not the model: `/queue`, `/stop` and stop words, `/new` and `/reset`. Pure.

Source: spec 02, R-2.34, R-2.35, R-2.39 to R-2.43, R-2.92; spec 01, R-1.19. What could change a text that a program
sends is read in messages of a channel only: stop words, and `/queue` behind other words.
"""

import math
import re
import unicodedata
from dataclasses import dataclass

from lanewayd.records import LARGEST_QUEUE_CAP, LONGEST_DEBOUNCE_MS, NO_CHOICE, QueueChoice, QueueRules

_MODES = {
    **dict.fromkeys(("steer", "steering", "steer-backlog", "steer+backlog"), "steer"),
    **dict.fromkeys(("followup", "followups", "follow-up", "follow-ups"), "followup"),
    **dict.fromkeys(("collect", "coalesce"), "collect"),
    **dict.fromkeys(("interrupt", "interrupts", "abort"), "interrupt"),
}
_DROPS = {
    **dict.fromkeys(("old", "oldest"), "old"),
    **dict.fromkeys(("new", "newest"), "new"),
    **dict.fromkeys(("summarize", "summary"), "summarize"),
}
_CLEARING = frozenset({"default", "reset", "clear"})
_UNITS_MS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

_QUEUE = re.compile(r"(?:^|(?<=\s))/queue(?=$|\s|:)", re.IGNORECASE)
_OPTION = re.compile(r"(debounce|cap|drop)[:=](.*)", re.IGNORECASE | re.DOTALL)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_TOKEN = re.compile(r"\s*(\S+)")
_RESET = re.compile(r"\s*/(?:new|reset)(?=$|\s)", re.IGNORECASE)

_STOP_WORDS = frozenset(
    {
        *("/stop", "stop", "abort", "cancel", "wait", "exit", "esc", "interrupt", "halt", "please stop", "stop please"),
        *("stopp", "anhalten", "aufhören", "abbrechen", "bitte stopp", "bitte aufhören"),
        *("arrête", "arrete", "arrêter", "annule", "annuler", "detente", "detén", "deten", "para", "alto", "cancela"),
        *("pare", "ferma", "fermati", "annulla", "стоп", "остановись", "остановить", "прекрати", "отмена"),
        *("停止", "停", "取消", "やめて", "止めて", "중지", "멈춰", "취소", "توقف", "रुको", "dur", "iptal"),
    }
)
_LONGEST_STOP = 40
"""A longer message is none, and need not be looked at."""


@dataclass(frozen=True, slots=True)
class QueueDirective:
    """What `/queue` says."""

    choice: QueueChoice = NO_CHOICE
    clears: bool = False
    """What the session had chosen holds no longer."""
    ignored: tuple[str, ...] = ()
    """Options whose values mean nothing, as they were written."""


@dataclass(frozen=True, slots=True)
class Directives:
    """What a message says to the service, and the text that is left for the model."""

    text: str
    queue: QueueDirective | None = None
    stops: bool = False
    resets: bool = False

    @property
    def is_alone(self) -> bool:
        """Nothing is left for the model: the message is answered without a run."""
        return not self.text and (self.stops or self.resets or self.queue is not None)


def read_directives(text: str, *, is_of_channel: bool) -> Directives:
    """What `text` says; all of it is left where it says nothing."""
    if is_stop(text, is_of_channel=is_of_channel):
        return Directives("", stops=True)
    reset = _RESET.match(text)
    rest = text[reset.end() :].strip() if reset else text
    match = _QUEUE.search(rest)
    if match is None or not (is_of_channel or not rest[: match.start()].strip()):
        return Directives(rest, resets=reset is not None)
    directive, end = _queue_directive(rest, match.end())
    return Directives(_joined(rest[: match.start()], rest[end:]), directive, resets=reset is not None)


def is_stop(text: str, *, is_of_channel: bool) -> bool:
    """Whether the whole message says to stop: case, white space and punctuation at the end do not count (R-2.92)."""
    if len(text.strip()) > _LONGEST_STOP:
        return False
    words = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    while words and unicodedata.category(words[-1]).startswith("P"):
        words = words[:-1].rstrip()
    return words in _STOP_WORDS if is_of_channel else words == "/stop"


def _queue_directive(text: str, start: int) -> tuple[QueueDirective, int]:
    """What stands behind `/queue`, and where its last part ends: the first unknown token ends it (R-2.39)."""
    end = start + 1 if text[start : start + 1] == ":" else start
    chosen: dict[str, str | int] = {}
    ignored: list[str] = []
    while token := _TOKEN.match(text, end):
        word = token[1].casefold()
        if word in _CLEARING:
            return QueueDirective(clears=True, ignored=tuple(ignored)), token.end()
        if option := _OPTION.fullmatch(token[1]):
            name, value = _option(option[1].lower(), option[2])
            if value is None:
                ignored.append(token[1])
            else:
                chosen[name] = value
        elif word in _MODES:
            chosen["mode"] = _MODES[word]
        else:
            break
        end = token.end()
    return QueueDirective(QueueChoice(**chosen), ignored=tuple(ignored)), end  # type: ignore[arg-type]


def _option(name: str, value: str) -> tuple[str, str | int | None]:
    """The field of QueueChoice and its value; None for one that means nothing."""
    if name == "drop":
        return "drop", _DROPS.get(value.casefold())
    if name == "cap":
        cap = min(math.floor(float(value)), LARGEST_QUEUE_CAP) if _NUMBER.fullmatch(value[:20]) else 0
        return "cap", cap or None
    match = _DURATION.fullmatch(value[:20])
    debounce_ms = round(float(match[1]) * _UNITS_MS[(match[2] or "").lower()]) if match else 0
    return "debounce_ms", min(debounce_ms, LONGEST_DEBOUNCE_MS) or None


def _joined(before: str, after: str) -> str:
    """What stood around a directive, with one gap between."""
    head, tail = before.rstrip(), after.lstrip()
    if not head or not tail:
        return (head or tail).strip()
    gap = before[len(head) :] + after[: len(after) - len(tail)]
    return f"{head}\n{tail}" if "\n" in gap else f"{head} {tail}"


def reply_to(directives: Directives, rules: QueueRules, stopping: int, cancelled: int) -> str:
    """What answers a message of nothing but directives: `rules` hold now in its session, `stopping` runs at work are
    being stopped and `cancelled` that waited have ended."""
    if directives.stops:
        return _stop_reply(stopping, cancelled)
    parts = ["The session begins anew."] if directives.resets else []
    if directives.queue is not None:
        parts.append(
            f"Queue of this session: mode {rules.mode.value}, debounce {round(rules.quiet_s * 1000)} ms, "
            f"cap {rules.cap}, drop {rules.drop.value}."
        )
        if directives.queue.ignored:
            parts.append(f"Not understood: {', '.join(directives.queue.ignored)[:200]}.")
    return " ".join(parts)


def _stop_reply(stopping: int, cancelled: int) -> str:
    if not stopping and not cancelled:
        return "There was nothing to stop."
    said = ["The run at work is being stopped."] if stopping else []
    if cancelled:
        said.append(f"{cancelled} waiting {'message is' if cancelled == 1 else 'messages are'} cancelled.")
    return " ".join(said)
