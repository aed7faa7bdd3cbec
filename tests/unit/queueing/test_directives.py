"""What a message says to the service: the grammar of `/queue`, stop words, resets."""

import pytest

from lanewayd.queueing.directives import Directives, QueueDirective, is_stop, read_directives, reply_to
from lanewayd.records import DropPolicy, QueueChoice, QueueMode, QueueRules


def read(text: str) -> Directives:
    return read_directives(text, is_of_channel=True)


def queue_of(text: str) -> QueueDirective:
    directive = read(text).queue
    assert directive is not None
    return directive


@pytest.mark.parametrize(
    ("word", "mode"),
    [
        *((word, "steer") for word in ("steer", "steering", "STEER", "steer-backlog", "steer+backlog")),
        *((word, "followup") for word in ("followup", "followups", "follow-up", "follow-ups")),
        *((word, "collect") for word in ("collect", "coalesce", "Collect")),
        *((word, "interrupt") for word in ("interrupt", "interrupts", "abort")),
    ],
)
def test_every_word_of_a_mode_is_known(word: str, mode: str) -> None:
    """R-2.34."""
    assert read(f"/queue {word}") == Directives("", QueueDirective(QueueChoice(mode)))


@pytest.mark.parametrize(
    ("word", "drop"),
    [
        *((word, "old") for word in ("old", "oldest", "OLD")),
        *((word, "new") for word in ("new", "newest")),
        *((word, "summarize") for word in ("summarize", "summary")),
    ],
)
@pytest.mark.parametrize("sign", [":", "="])
def test_every_word_of_drop_is_known(word: str, drop: str, sign: str) -> None:
    """R-2.35."""
    assert queue_of(f"/queue drop{sign}{word}").choice == QueueChoice(drop=drop)


@pytest.mark.parametrize(
    ("text", "left", "mode"),
    [
        ("/queue collect and this", "and this", "collect"),
        ("look at this /queue collect", "look at this", "collect"),
        ("look /queue collect at this", "look at this", "collect"),
        ("one\n/queue collect\ntwo", "one\ntwo", "collect"),
        ("/QUEUE: collect cap:3 now cap:4", "now cap:4", "collect"),
        ("/queue:collect x", "x", "collect"),
        ("/queue what is this", "what is this", ""),
        ("/queue collect /queue followup", "/queue followup", "collect"),
        ("/queue collect steer", "", "steer"),
    ],
)
def test_parsing_stops_at_the_first_unknown_word_and_the_rest_is_the_message(text: str, left: str, mode: str) -> None:
    """R-2.39."""
    said = read(text)
    assert said.queue is not None
    assert (said.text, said.queue.choice.mode) == (left, mode)


@pytest.mark.parametrize("text", ["/queued collect", "x/queue collect", "//queue collect", "/queue-x", "queue collect"])
def test_only_the_word_itself_is_a_directive(text: str) -> None:
    assert read(text) == Directives(text)


@pytest.mark.parametrize("word", ["default", "reset", "clear", "Default"])
def test_a_clearing_word_forgets_what_was_chosen_and_ends_the_directive(word: str) -> None:
    """R-2.40."""
    assert read(f"/queue cap:3 {word} collect") == Directives("collect", QueueDirective(clears=True))


@pytest.mark.parametrize(
    ("value", "debounce_ms"),
    [
        ("750", 750),
        ("750ms", 750),
        ("2s", 2000),
        ("1.5S", 1500),
        ("2m", 120_000),
        ("1h", 3_600_000),
        ("2d", 3_600_000),
        *((value, None) for value in ("0", "0s", "-1", "-5s", "soon", "1w", "", "٣", "1e3")),
    ],
)
def test_a_debounce_has_milliseconds_or_a_unit(value: str, debounce_ms: int | None) -> None:
    """R-2.41: zero and what means nothing are ignored and told."""
    directive = queue_of(f"/queue collect debounce:{value}")
    ignored = () if debounce_ms else (f"debounce:{value}",)
    assert directive == QueueDirective(QueueChoice("collect", debounce_ms=debounce_ms), ignored=ignored)


@pytest.mark.parametrize(
    ("value", "cap"), [("1", 1), ("2.9", 2), ("5000", 1000), ("0", None), ("0.9", None), ("-3", None), ("many", None)]
)
def test_a_cap_is_a_whole_number_from_one(value: str, cap: int | None) -> None:
    """R-2.42."""
    directive = queue_of(f"/queue cap={value}")
    assert (directive.choice.cap, directive.ignored) == (cap, () if cap else (f"cap={value}",))


def test_alone_it_is_for_the_session_and_with_text_for_the_message() -> None:
    """R-2.43."""
    assert read(" /queue collect ").is_alone
    assert read("/queue").is_alone
    assert not read("/queue collect hello").is_alone
    assert not read("hello").is_alone


STOPS = ["/stop", " /STOP\n", "/stop!"]
STOP_WORDS = ["stop", "Stop.", "STOP!!!", " please   stop… ", "abort", "cancel", "wait", "exit", "esc", "interrupt"]
TRANSLATED = ["halt", "стоп", "Stopp!", "arrête", "arre\u0302te", "detente", "停止。", "やめて", "توقف"]
NO_STOPS = ["stop it", "nonstop", "/stopped", "/stop now", "don't stop", "", "...", "stop " * 20]


@pytest.mark.parametrize("text", STOPS)
def test_the_command_stops_whoever_sends_it(text: str) -> None:
    assert is_stop(text, is_of_channel=False)
    assert is_stop(text, is_of_channel=True)


@pytest.mark.parametrize("text", STOP_WORDS + TRANSLATED)
def test_a_stop_word_stops_only_alone_and_only_from_a_channel(text: str) -> None:
    """R-2.92."""
    assert is_stop(text, is_of_channel=True)
    assert not is_stop(text, is_of_channel=False)
    assert not is_stop(f"{text} me", is_of_channel=True)


@pytest.mark.parametrize("text", NO_STOPS)
def test_other_words_stop_nothing(text: str) -> None:
    assert read(text) == Directives(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [("/new", ""), ("/reset", ""), (" /NEW ", ""), ("/new hello", "hello"), ("/reset\nhello\nyou", "hello\nyou")],
)
def test_a_reset_is_the_first_word(text: str, left: str) -> None:
    """R-1.19."""
    assert read_directives(text, is_of_channel=False) == Directives(left, resets=True)


@pytest.mark.parametrize("text", ["/newer", "a /new", "/resetting it", "new"])
def test_other_texts_reset_nothing(text: str) -> None:
    assert read(text) == Directives(text)


def test_a_reset_may_be_followed_by_a_directive() -> None:
    assert read("/new /queue collect hello") == Directives("hello", QueueDirective(QueueChoice("collect")), resets=True)


def test_without_a_channel_only_what_a_message_begins_with_is_read() -> None:
    text = "write a page about /queue collect"
    assert read_directives(text, is_of_channel=False) == Directives(text)
    assert read_directives(" /queue collect hello", is_of_channel=False).text == "hello"


@pytest.mark.parametrize(
    ("text", "counts", "reply"),
    [
        ("/stop", (0, 0), "There was nothing to stop."),
        ("/stop", (1, 0), "The run at work is being stopped."),
        ("/stop", (1, 1), "The run at work is being stopped. 1 waiting message is cancelled."),
        ("/stop", (0, 2), "2 waiting messages are cancelled."),
        ("/new", (0, 0), "The session begins anew."),
        ("/queue", (0, 0), "Queue of this session: mode collect, debounce 1500 ms, cap 3, drop new."),
        (
            "/queue cap:x",
            (0, 0),
            "Queue of this session: mode collect, debounce 1500 ms, cap 3, drop new. Not understood: cap:x.",
        ),
    ],
)
def test_the_reply_tells_what_was_done(text: str, counts: tuple[int, int], reply: str) -> None:
    rules = QueueRules(QueueMode.COLLECT, 3, DropPolicy.NEW, 1.5)
    assert reply_to(read(text), rules, *counts) == reply
