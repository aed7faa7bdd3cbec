"""The language of Google's Gemini API: streamGenerateContent as server-sent events."""

from lanewayd.providers.call_ids import CallIdFactory, CallIds
from lanewayd.providers.gemini.decode import GeminiInterpreter
from lanewayd.providers.gemini.encode import answer_schema, encode_request, path_of
from lanewayd.providers.interface import Decoder, ModelRequest
from lanewayd.providers.json_events import JsonEvents
from lanewayd.providers.stream_decoder import StreamDecoder


class Gemini:
    """Encodes requests and decodes responses; holds no state of either.

    `new_call_id` makes ids for calls that come without one, as most do.
    """

    def __init__(self, *, new_call_id: CallIdFactory) -> None:
        self._new_call_id = new_call_id

    @property
    def models_path(self) -> str:
        return "/v1beta/models?pageSize=1000"

    def path(self, request: ModelRequest) -> str:
        return path_of(request.model)

    def headers(self, api_key: str) -> dict[str, str]:
        # A key in the address, as the API takes it too, would stand in the logs of every proxy.
        return {"x-goog-api-key": api_key} if api_key else {}

    def has_native_schema(self, request: ModelRequest) -> bool:
        return answer_schema(request) is not None

    def encode(self, request: ModelRequest) -> bytes:
        return encode_request(request)

    def decoder(self, request: ModelRequest, provider: str) -> Decoder:
        ids = CallIds(request.messages, self._new_call_id)
        interpreter = GeminiInterpreter(provider=provider, model=request.model, ids=ids)
        return StreamDecoder(JsonEvents(), interpreter, provider=provider, model=request.model)
