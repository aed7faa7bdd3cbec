"""The Messages language of Anthropic and of the services that speak it too."""

from lanewayd.providers.anthropic.decode import MessageInterpreter
from lanewayd.providers.anthropic.encode import answer_format, encode_request
from lanewayd.providers.call_ids import CallIdFactory, CallIds
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.json_events import JsonEvents
from lanewayd.providers.stream_decoder import StreamDecoder

VERSION = "2023-06-01"
"""Of the API; it has had no other since. Source: docs.claude.com, API reference, "Versions"."""


class AnthropicMessages:
    """Encodes requests and decodes responses; holds no state of either.

    `new_call_id` makes ids for calls that come without one. With `needs_end_mark` an answer without `message_stop` was
    cut: Anthropic itself always sends it, not all others do (R-5.79).
    """

    def __init__(self, *, new_call_id: CallIdFactory, needs_end_mark: bool = False) -> None:
        self._new_call_id = new_call_id
        self._needs_end_mark = needs_end_mark

    @property
    def models_path(self) -> str:
        return "/v1/models?limit=1000"

    def path(self, request: ModelRequest) -> str:
        return "/v1/messages"

    def headers(self, api_key: str) -> dict[str, str]:
        headers = {"anthropic-version": VERSION}
        if api_key:
            headers["x-api-key"] = api_key
        return headers

    def has_native_schema(self, request: ModelRequest) -> bool:
        return answer_format(request) is not None

    def encode(self, request: ModelRequest) -> bytes:
        return encode_request(request)

    def decoder(self, request: ModelRequest, provider: str) -> StreamDecoder:
        ids = CallIds(request.messages, self._new_call_id)
        interpreter = MessageInterpreter(
            provider=provider, model=request.model, ids=ids, needs_end_mark=self._needs_end_mark
        )
        return StreamDecoder(JsonEvents(), interpreter, provider=provider, model=request.model)
