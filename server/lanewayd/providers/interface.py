"""What the loop asks of a model service: one request in, normalised stream events out (spec 05, section 1).

The loop never sees a provider's words, an HTTP library or an exception: a failure is the last event.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from lanewayd.messages import (
    UNKNOWN_MODEL,
    AssistantMessage,
    FailureClass,
    Message,
    ModelFacts,
    RunError,
    ThinkingLevel,
    ToolSpec,
)
from lanewayd.providers.failure_kinds import kind_of
from lanewayd.providers.failure_kinds import reason_of as reason_of  # noqa: PLC0414 - a part of this interface
from lanewayd.providers.image_turns import oldest_with_images as oldest_with_images  # noqa: PLC0414 - tells callers which contents a request needs

DEFAULT_OUTPUT_CAP = 32_000
EVENTS_PER_LOOP_TURN = 8
"""Events at most that a provider gives before other work runs; after the first of a call it always does (D-15)."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call. `model` is the provider's own name of the model, without the provider's prefix."""

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    idle_timeout_cap_s: float | None = None
    """What is left of a finite run budget: the idle watchdog never waits longer, and an answer that is complete but for
    its end mark is given before that is over. None = no cap."""
    facts: ModelFacts = UNKNOWN_MODEL
    profile: str = ""
    """The credential to use, by its name in the settings; "" = the provider's only one."""
    thinking: ThinkingLevel | None = None
    """None: nothing is said about thinking, the provider's own default holds."""
    max_output_tokens: int = 0
    """What the run or the settings ask for; 0 = nothing, see `output_cap`."""
    temperature: float | None = None
    seed: int | None = None
    response_schema: Mapping[str, Any] | None = None
    """JSON Schema of the answer; a family with a feature of its own for it says it there, the others say nothing."""
    contents: Mapping[str, bytes] = field(default_factory=dict)
    """Of attachments, by `blob_hash`; one whose content is not here is named in the text only."""
    cache_key: str = ""
    """The same for all calls of a session; helps services that cache prompts by a key. "" = none."""
    cache_retention: str = "short"
    """How long a prompt cache shall live: none, short or long (spec 04, 10.2)."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the body from the settings, sent where the request has none of that name (R-4.17)."""

    @property
    def output_cap(self) -> int:
        """Output tokens to ask for: what the run says, else the model's most up to 32,000 (R-4.30); 0 = not known."""
        return self.max_output_tokens or min(self.facts.max_output_tokens, DEFAULT_OUTPUT_CAP)


# Deltas come by the thousand: a named tuple is made in a third of the time that a frozen dataclass takes. Their third
# field keeps text and reasoning from being equal.
class TextDelta(NamedTuple):
    """More visible text of block `content_index`."""

    content_index: int
    text: str
    kind: Literal["text"] = "text"


class ReasoningDelta(NamedTuple):
    """More reasoning of block `content_index`."""

    content_index: int
    text: str
    kind: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True, slots=True)
class BlockEnded:
    """Block `content_index` gets no more deltas."""

    content_index: int


@dataclass(frozen=True, slots=True)
class Done:
    """The message is complete. Terminal. Its tool calls have non-empty unique ids and checked argument objects."""

    message: AssistantMessage


@dataclass(frozen=True, slots=True)
class Failed:
    """The call failed. Terminal. `partial` holds the text and reasoning that were emitted, without tool calls."""

    error: RunError
    partial: AssistantMessage
    retry_after_s: float | None = None
    """What the server asked for."""
    is_transient: bool = False
    """The same request may succeed in a while (spec 04, section 5); models/failover.py decides what is done."""
    finer: FailureClass | None = None
    """None: what the reason of the error stands for."""
    observed_tokens: int = 0
    """The size of the prompt, when the service refused it for that and told it; 0 = not told."""
    is_idle: bool = False
    """The call was given up, as nothing came for too long."""

    @property
    def kind(self) -> FailureClass:
        """Why it failed."""
        return self.finer or kind_of(self.error.reason)


StreamEvent = TextDelta | ReasoningDelta | BlockEnded | Done | Failed


class Provider(Protocol):
    """A configured model service."""

    @property
    def name(self) -> str:
        """The name in the settings, as in `provider/model`."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Events of one call, exactly one terminal, last. Raises nothing but CancelledError.

        Closing the iterator (`aclose`) or cancelling the task ends the request at once and gives its connection back.
        """

    def has_native_schema(self, request: ModelRequest) -> bool:
        """Whether the service itself holds the answer to `request.response_schema`; False without one."""

    async def close(self) -> None:
        """Give connections back. Idempotent."""


class Dialect(Protocol):
    """A provider family's language. Pure: one encoder per request, one decoder object per response."""

    @property
    def models_path(self) -> str:
        """What follows the base URL of the service's list of models; asked for diagnosis only."""

    def path(self, request: ModelRequest) -> str:
        """What follows the base URL; it may hold the model and a query."""

    def headers(self, api_key: str) -> dict[str, str]:
        """What the family wants in the headers: the key where it belongs, unless it is empty, and whatever else."""

    def has_native_schema(self, request: ModelRequest) -> bool:
        """Whether `encode` has the service itself hold the answer to `request.response_schema`; False without one.

        Where it is False nothing of the schema is sent, and the caller has to ask for it in words.
        """

    def encode(self, request: ModelRequest) -> bytes:
        """The request body, JSON in UTF-8 without lone surrogates."""

    def decoder(self, request: ModelRequest, provider: str) -> "Decoder":
        """A fresh decoder for the response to `request`."""


class Decoder(Protocol):
    """Turns response bytes into stream events, incrementally."""

    @property
    def is_finished(self) -> bool:
        """A terminal event was returned; the rest of the response does not matter."""

    @property
    def is_complete(self) -> bool:
        """The model has finished; only usage or the end mark may be missing. Then `end` gives Done even after a cut."""

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Events that `data` completes. Never raises; bad input becomes one Failed."""

    @property
    def progress(self) -> int:
        """Decoded provider events so far, visible or not; comments and blank lines are none. Grows, never falls."""

    def end(self) -> list[StreamEvent]:
        """The body ended: what is left, with the terminal event if there was none yet."""

    def fail(self, error: RunError, *, is_transient: bool) -> Failed:
        """The terminal for a fault outside the body (timeout, connection); carries the partial message."""
