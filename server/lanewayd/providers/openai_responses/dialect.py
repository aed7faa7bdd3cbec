"""OpenAI's language of responses, and of the services that speak it too."""

from lanewayd.providers.call_ids import CallIdFactory, CallIds
from lanewayd.providers.endpoint import bearer
from lanewayd.providers.interface import Decoder, ModelRequest
from lanewayd.providers.json_events import JsonEvents
from lanewayd.providers.openai_responses.decode import ResponsesAnswer
from lanewayd.providers.openai_responses.encode import encode_request
from lanewayd.providers.openai_responses.options import has_native_schema
from lanewayd.providers.stream_decoder import StreamDecoder


class OpenAIResponses:
    """Encodes requests and decodes responses; holds no state of either.

    `provider` is the name of the service, whose own reasoning alone it can read again; `new_call_id` makes ids for
    calls that come without one; `is_openai`: OpenAI itself answers, not a service that speaks its language.
    """

    def __init__(self, *, provider: str, new_call_id: CallIdFactory, is_openai: bool = False) -> None:
        self._provider = provider
        self._is_openai = is_openai
        self._new_call_id = new_call_id

    @property
    def models_path(self) -> str:
        return "/models"

    def path(self, request: ModelRequest) -> str:
        return "/responses"

    def headers(self, api_key: str) -> dict[str, str]:
        return bearer(api_key)

    def has_native_schema(self, request: ModelRequest) -> bool:
        return has_native_schema(request)

    def encode(self, request: ModelRequest) -> bytes:
        return encode_request(request, provider=self._provider, is_openai=self._is_openai)

    def decoder(self, request: ModelRequest, provider: str) -> Decoder:
        ids = CallIds(request.messages, self._new_call_id)
        answer = ResponsesAnswer(provider=provider, model=request.model, ids=ids)
        return StreamDecoder(JsonEvents(), answer, provider=provider, model=request.model)
