"""The chat completions language of OpenAI and of the many services that speak it."""

from lanewayd.providers.call_ids import CallIdFactory, CallIds
from lanewayd.providers.endpoint import bearer
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.openai_chat.decode import ChatDecoder
from lanewayd.providers.openai_chat.encode import encode_request


class OpenAIChat:
    """Encodes requests and decodes responses; holds no state of either.

    `new_call_id` makes ids for calls that come without one. `max_call_id_chars` is 40 for OpenAI itself; other services
    take longer ids, and some keep state in them.
    """

    def __init__(self, *, new_call_id: CallIdFactory, max_call_id_chars: int | None = None) -> None:
        self._new_call_id = new_call_id
        self._max_call_id_chars = max_call_id_chars

    @property
    def models_path(self) -> str:
        return "/models"

    def path(self, request: ModelRequest) -> str:
        return "/chat/completions"

    def headers(self, api_key: str) -> dict[str, str]:
        return bearer(api_key)

    def has_native_schema(self, request: ModelRequest) -> bool:
        return False

    def encode(self, request: ModelRequest) -> bytes:
        return encode_request(request, max_call_id_chars=self._max_call_id_chars)

    def decoder(self, request: ModelRequest, provider: str) -> ChatDecoder:
        ids = CallIds(request.messages, self._new_call_id)
        return ChatDecoder(provider=provider, model=request.model, ids=ids)
