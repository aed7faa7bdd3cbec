"""What a model reads and writes, in one form for all providers. Pure values; see spec 05, section 1."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class StopReason(StrEnum):
    """Why an assistant message ended."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_USE = "tool_use"
    ERROR = "error"
    ABORTED = "aborted"


class ToolOutcome(StrEnum):
    """How a tool call ended. UNKNOWN: it was launched and the process died; it may or may not have happened."""

    OK = "ok"
    ERROR = "error"
    BLOCKED = "blocked"
    SKIPPED = "skipped"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class FailureClass(StrEnum):
    """Why a model call failed, as what is done about it asks: finer than the reasons of the contract (spec 04, 5)."""

    AUTH = "auth"
    AUTH_PERMANENT = "auth_permanent"
    BILLING = "billing"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    """Also what never came about or broke off: refused, reset and cut connections."""
    MODEL_NOT_FOUND = "model_not_found"
    SESSION_EXPIRED = "session_expired"
    CONTEXT_OVERFLOW = "context_overflow"
    REFUSAL = "refusal"
    FORMAT = "format"
    """The request itself was rejected; the same one will be again."""
    NO_ERROR_DETAILS = "no_error_details"
    UNCLASSIFIED = "unclassified"
    EMPTY_RESPONSE = "empty_response"
    UNKNOWN = "unknown"


class ThinkingLevel(StrEnum):
    """How much a model may think before it answers, weakest first; ADAPTIVE: the provider decides; ULTRA: MAX, and
    guidance for sub-agents. Source: spec 04, 3.1."""

    OFF = "off"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"
    ADAPTIVE = "adaptive"
    ULTRA = "ultra"

    @classmethod
    def of(cls, text: str) -> "ThinkingLevel | None":
        """What people mean who write `text` (R-4.20); None: no level."""
        word = text.strip().lower()
        if re.fullmatch(r"(?:extra|x)[-_ ]high", word):
            return cls.XHIGH
        if word == "highest":
            return cls.HIGH
        return next((level for level in cls if level.value == word), None)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call, or the sum of several. `input_tokens` excludes cache reads and writes."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    unavailable: bool = False
    """A call did not say all that it used: the figures are what is known, not measurements."""
    cost_usd: float | None = None
    """Of the calls whose prices are known; None = of none, or nothing was used."""
    is_cost_partial: bool = False
    """Beside those in `cost_usd` there were calls whose prices are not known."""

    @property
    def total_tokens(self) -> int:
        """Input, cached input and output; reasoning tokens are part of the output."""
        return self.context_tokens + self.output_tokens

    @property
    def context_tokens(self) -> int:
        """What the model read: of a session's last call the size of its context (R-8.74)."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def whole_cost_usd(self) -> float | None:
        """The cost, if every price is known (R-8.76)."""
        return None if self.is_cost_partial else self.cost_usd

    @property
    def lacks_prices(self) -> bool:
        """Something was used whose price is not known."""
        return self.is_cost_partial or (self.cost_usd is None and self.total_tokens > 0)

    def __add__(self, other: "Usage") -> "Usage":
        known = [usage.cost_usd for usage in (self, other) if usage.cost_usd is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.unavailable or other.unavailable,
            sum(known) if known else None,
            bool(known) and (self.lacks_prices or other.lacks_prices),
        )


@dataclass(frozen=True, slots=True)
class Text:
    """Visible text."""

    text: str
    signature: str = ""
    """What the provider wants back with this text, unread and unshown; empty for most."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Text the model thought. `field` is the provider's field it came in, so that replay uses the same one."""

    text: str
    field: str = ""
    signature: str = ""
    """What the provider wants back with this thought, unread and unshown, also beside an empty text; empty for most."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A request to run a tool. `arguments_json` is the text of one JSON object, checked when the message ended."""

    call_id: str
    name: str
    arguments_json: str
    signature: str = ""
    """What the provider wants back with this call, unread and unshown; empty for most."""


AssistantBlock = Text | Reasoning | ToolCall


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message. Its bytes are kept as the blob `blob_hash` (SHA-256, hex)."""

    name: str
    mime_type: str
    blob_hash: str
    size_bytes: int

    @property
    def is_image(self) -> bool:
        """Whether a model with eyes can look at it."""
        return self.mime_type in IMAGE_TYPES

    @property
    def is_text(self) -> bool:
        """Whether its content can stand in a prompt."""
        return self.size_bytes <= MAX_TEXT_FILE_BYTES and self.mime_type.startswith(TEXT_TYPES)


MAX_TEXT_FILE_BYTES = 256 * 1024
TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the caller said."""

    text: str
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What the model answered. With `stop_reason` ERROR or ABORTED it is kept for people and left out of replay."""

    content: tuple[AssistantBlock, ...]
    provider: str
    model: str
    stop_reason: StopReason
    usage: Usage = field(default_factory=Usage)
    provider_stop: str = ""
    response_model: str = ""
    """The model that answered, where the service named another than `model`, which it was asked for."""

    @property
    def text(self) -> str:
        """The visible text, all blocks joined."""
        if len(self.content) == 1 and isinstance(self.content[0], Text):
            return self.content[0].text
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in the model's order."""
        if len(self.content) == 1 and isinstance(self.content[0], Text):
            return ()
        return tuple(block for block in self.content if isinstance(block, ToolCall))


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    """What came back from one call."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    outcome: ToolOutcome = ToolOutcome.OK


Message = UserMessage | AssistantMessage | ToolResultMessage


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it. `schema` is a JSON Schema of type object."""

    name: str
    description: str
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True, slots=True)
class LongPrompts:
    """What a call costs more whose prompt, with what the cache holds of it, has more than `above_tokens`: all that it
    reads `input_factor` times as much, what it writes `output_factor` times."""

    above_tokens: int
    input_factor: float
    output_factor: float


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens; None = not known. `long_prompts` None: all prompts cost the same."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    long_prompts: LongPrompts | None = None

    @property
    def is_known(self) -> bool:
        """The price of what every call uses."""
        return self.input is not None and self.output is not None


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model, from the catalogue and the settings. The defaults stand for a model nobody knows."""

    context_window: int = 200_000
    """Tokens; what the settings lower it to is in it (R-4.130)."""
    max_output_tokens: int = 0
    """The most a call may ask for; 0 = not known."""
    accepts_images: bool = False
    can_think: bool = False
    thinking_levels: tuple[ThinkingLevel, ...] = ()
    """Levels the model takes besides OFF, weakest first; empty = all that its family's mapping knows (R-4.27)."""
    effort_map: Mapping[str, str | None] = field(default_factory=dict)
    """Level -> what is sent instead of the family's word; None = the level is not supported (R-4.27)."""
    thinking_format: str = ""
    """How a chat-completions service wants thinking said, if not as an effort (R-4.31): zai, qwen, ..."""
    replays_reasoning: bool = False
    """Old reasoning goes back to the model, not only that of the tool loop under way."""
    prices: Prices = Prices()
    is_known: bool = False
    """Stands in the catalogue or the settings."""


UNKNOWN_MODEL = ModelFacts()

SCRIPTED_PROVIDER = "scripted"
"""Plays scripts from home, which are its models, and understands nothing. It always exists and needs no key."""
LOCAL_PROVIDER = "local"
"""The embedded model, in a process of the service's own. It always has this name and needs no key."""


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run or a model call failed. `reason` is an ErrorCode value; `message` says what happened and what to do."""

    reason: str
    message: str
    provider: str = ""
    model: str = ""
    http_status: int = 0
    retryable: bool = False
    tool_name: str = ""


@dataclass(frozen=True, slots=True)
class Payload:
    """A piece of a run's result. Over the limit of one message `text` is cut, and `total_bytes` is the full length."""

    text: str
    truncated: bool = False
    total_bytes: int = 0
    is_error: bool = False
    is_reasoning: bool = False


def valid_text(text: str) -> str:
    """`text` as valid UTF-8 can hold it: surrogate pairs joined, lone ones U+FFFD; the same object if it is valid."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def cut_utf8(text: str, max_bytes: int) -> Payload:
    """`text` as a payload of at most `max_bytes` bytes of UTF-8, cut at a character."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= max_bytes:
        return Payload(text, total_bytes=len(encoded))
    return Payload(encoded[:max_bytes].decode("utf-8", "ignore"), truncated=True, total_bytes=len(encoded))
