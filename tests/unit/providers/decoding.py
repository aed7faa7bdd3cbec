"""What the tests of all decoders share: the bytes of a response in, its events, final message or failure out."""

import itertools
from collections.abc import Sequence
from typing import Protocol

from lanewayd.messages import AssistantMessage, StopReason, UserMessage
from lanewayd.providers.call_ids import CallIdFactory
from lanewayd.providers.interface import Decoder, Dialect, Done, Failed, ModelRequest, StreamEvent


class MakeDialect(Protocol):
    """A dialect whose calls get made-up ids of this factory where they have none."""

    def __call__(self, *, new_call_id: CallIdFactory) -> Dialect: ...


class DecoderStage:
    """Decodes bodies of one language, each with a fresh decoder. Made-up ids are `made_up_1`, `made_up_2` ..."""

    def __init__(self, make_dialect: MakeDialect, *, model: str = "m1", provider: str = "acme") -> None:
        self._make_dialect = make_dialect
        self._provider = provider
        self.request = ModelRequest(model, "", (UserMessage("hi"),))

    def new_decoder(self, request: ModelRequest | None = None) -> Decoder:
        numbers = itertools.count(1)
        dialect = self._make_dialect(new_call_id=lambda: f"made_up_{next(numbers)}")
        return dialect.decoder(request or self.request, self._provider)

    def decode(self, *chunks: bytes, request: ModelRequest | None = None) -> list[StreamEvent]:
        decoder = self.new_decoder(request)
        return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.end()

    def message_of(self, *chunks: bytes, request: ModelRequest | None = None) -> AssistantMessage:
        events = self.decode(*chunks, request=request)
        assert one_terminal(events)
        done = events[-1]
        assert isinstance(done, Done), done
        return done.message

    def failure_of(self, *chunks: bytes) -> Failed:
        events = self.decode(*chunks)
        assert one_terminal(events)
        failed = events[-1]
        assert isinstance(failed, Failed), failed
        assert failed.partial.stop_reason is StopReason.ERROR
        assert failed.partial.tool_calls == ()
        return failed


def one_terminal(events: Sequence[StreamEvent]) -> bool:
    """The last event is terminal, and no other is."""
    return [isinstance(event, Done | Failed) for event in events].index(True) == len(events) - 1
