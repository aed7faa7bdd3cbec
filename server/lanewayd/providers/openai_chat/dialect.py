"""The chat completions language of OpenAI and of the many services that speak it."""

from lanewayd.providers.call_ids import CallIdFactory, CallIds
from lanewayd.providers.endpoint import bearer
from lanewayd.providers.interface import Decoder, ModelRequest
from lanewayd.providers.json_events import JsonEvents
from lanewayd.providers.openai_chat.decode import ChatAnswer
from lanewayd.providers.openai_chat.encode import encode_request
from lanewayd.providers.openai_chat.manners import ChatManners
from lanewayd.providers.openai_chat.options import has_native_schema
from lanewayd.providers.stream_decoder import StreamDecoder

UNKNOWN_SERVICE = ChatManners()


class OpenAIChat:
    """Encodes requests and decodes responses; holds no state of either.

    `new_call_id` makes ids for calls that come without one.
    """

    def __init__(self, *, new_call_id: CallIdFactory, manners: ChatManners = UNKNOWN_SERVICE) -> None:
        self._new_call_id = new_call_id
        self._manners = manners

    @property
    def models_path(self) -> str:
        return "/models"

    def path(self, request: ModelRequest) -> str:
        return "/chat/completions"

    def headers(self, api_key: str) -> dict[str, str]:
        return bearer(api_key)

    def has_native_schema(self, request: ModelRequest) -> bool:
        return has_native_schema(request, self._manners)

    def encode(self, request: ModelRequest) -> bytes:
        return encode_request(request, self._manners)

    def decoder(self, request: ModelRequest, provider: str) -> Decoder:
        ids = CallIds(request.messages, self._new_call_id)
        answer = ChatAnswer(provider=provider, model=request.model, ids=ids)
        return StreamDecoder(JsonEvents(), answer, provider=provider, model=request.model)
