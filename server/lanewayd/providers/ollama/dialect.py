"""Ollama's own language: /api/chat, one JSON value a line."""

from lanewayd.providers.call_ids import CallIdFactory, CallIds
from lanewayd.providers.endpoint import bearer
from lanewayd.providers.interface import Decoder, ModelRequest
from lanewayd.providers.json_events import JsonEvents
from lanewayd.providers.ollama.decode import OllamaAnswer
from lanewayd.providers.ollama.encode import encode_request
from lanewayd.providers.ollama.options import has_native_schema
from lanewayd.providers.stream_decoder import StreamDecoder


class Ollama:
    """Encodes requests and decodes responses; holds no state of either.

    `new_call_id` makes the ids of the calls. What a model thought goes back to the service `provider` only, if given.
    """

    def __init__(self, *, new_call_id: CallIdFactory, provider: str | None = None) -> None:
        self._new_call_id = new_call_id
        self._provider = provider

    @property
    def models_path(self) -> str:
        return "/api/tags"

    def path(self, request: ModelRequest) -> str:
        return "/api/chat"

    def headers(self, api_key: str) -> dict[str, str]:
        return {"accept": "application/x-ndjson, application/json", **bearer(api_key)}

    def has_native_schema(self, request: ModelRequest) -> bool:
        return has_native_schema(request)

    def encode(self, request: ModelRequest) -> bytes:
        return encode_request(request, provider=self._provider)

    def decoder(self, request: ModelRequest, provider: str) -> Decoder:
        ids = CallIds(request.messages, self._new_call_id)
        answer = OllamaAnswer(provider=provider, model=request.model, ids=ids)
        return StreamDecoder(JsonEvents("ndjson"), answer, provider=provider, model=request.model)
