"""Asks a model service for its models: the cheapest request that shows whether it is there and takes the key.

For diagnosis only; runs go through http_provider.py.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import httpx

from lanewayd.errors import ErrorCode
from lanewayd.providers.failures import Fault, classify_response, fault
from lanewayd.providers.redaction import hide_secret
from lanewayd.providers.transport_faults import TRANSPORT_EXCEPTIONS, fault_before_response

_MAX_BODY_BYTES = 4 * 2**20
_CONNECT_S = 5.0


@dataclass(frozen=True, slots=True)
class ModelList:
    """What came of it. `models` None: the answer does not name any. No key stands in `fault`."""

    fault: Fault | None
    http_status: int = 0
    models: frozenset[str] | None = None


async def ask_for_models(
    url: str,
    *,
    headers: Mapping[str, str],
    api_key: str,
    transport: httpx.AsyncBaseTransport,
    limit_s: float,
    now: datetime,
) -> ModelList:
    """GET `url` as a call to a model would be made. Raises nothing but CancelledError. Owns the transport.

    `headers` carry the key; `api_key` is what must not be shown.
    """
    headers = {"accept": "application/json", "user-agent": "laneway", **headers}
    timeout = httpx.Timeout(limit_s, connect=min(_CONNECT_S, limit_s))
    async with httpx.AsyncClient(transport=transport, timeout=timeout) as client:
        try:
            async with client.stream("GET", url, headers=headers) as response:
                body = b""
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _MAX_BODY_BYTES:
                        break
        except httpx.ReadTimeout:
            return ModelList(fault(ErrorCode.PROVIDER_STALLED, f"no answer within {limit_s:g} s"))
        except TRANSPORT_EXCEPTIONS as error:
            return ModelList(fault_before_response(error))
    status = response.status_code
    if response.is_success:
        models, is_json = _models_in(body)
        problem = None if is_json else fault(ErrorCode.PROVIDER_BAD_RESPONSE, "what answers is no API")
        return ModelList(problem, status, models)
    cause = classify_response(status, response.headers, body, now=now)
    if status in (404, 405, 501) and cause.reason is not ErrorCode.PROVIDER_AUTH:
        cause = fault(ErrorCode.PROVIDER_MODEL_NOT_FOUND)
    hidden = hide_secret(cause.said, api_key) if api_key else cause.said
    return ModelList(Fault(cause.reason, cause.what, said=hidden), status)


def _models_in(body: bytes) -> tuple[frozenset[str] | None, bool]:
    """The ids in a list of models, None if there is none; whether the body is JSON."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None, False
    document = document if isinstance(document, dict) else {}
    for listing, name in (("data", "id"), ("models", "name")):
        rows = document.get(listing)
        if isinstance(rows, list):
            names = [row.get(name) for row in rows if isinstance(row, dict)]
            listed = {each.removeprefix("models/") for each in names if isinstance(each, str)}
            # Ollama takes a name without a tag for the one tagged `latest`, and lists the tag.
            return frozenset(listed | {each.removesuffix(":latest") for each in listed}), True
    return None, True
