"""When a service rejects the signatures that it gave with its thoughts: the same request without any. Pure.

It happens when a service changes its keys, or another one answers under the same name. Without this the session could
never be continued. Source: spec 05, R-5.119.
"""

import re
from dataclasses import replace

from lanewayd.messages import AssistantMessage, Message
from lanewayd.providers.interface import ModelRequest

_BAD_REQUEST = 400
# Anthropic also says it of the blocks: that they were changed, are of another conversation, or stand in a wrong place.
_REJECTED = re.compile(r"signature|encrypted.content|redacted_thinking|thinking\W{1,3}blocks?", re.IGNORECASE)


def without_rejected_signatures(request: ModelRequest, status: int, body: bytes) -> ModelRequest | None:
    """What to send in place of `request`, which was answered with `status` and `body`; None: the answer stands."""
    if status != _BAD_REQUEST or not _REJECTED.search(body.decode("utf-8", "replace")):
        return None
    messages = tuple(map(_unsigned, request.messages))
    return None if messages == request.messages else replace(request, messages=messages)


def _unsigned(message: Message) -> Message:
    if not isinstance(message, AssistantMessage) or not any(block.signature for block in message.content):
        return message
    return replace(message, content=tuple(replace(block, signature="") for block in message.content))
