"""Which attachments a model is shown and what it reads of the others. Pure; shared by all dialects.

Works on the request's copy; the stored transcript is never changed. Source: spec 06, R-6.68 and R-6.69; spec 05,
R-5.116 and R-5.117.
"""

from base64 import b64encode
from collections.abc import Set
from dataclasses import replace

from lanewayd.messages import IMAGE_TYPES, Attachment, Message, UserMessage
from lanewayd.providers.image_turns import oldest_with_images
from lanewayd.providers.interface import ModelRequest

_MAX_NAME_CHARS = 200


def shown_messages(request: ModelRequest, types: Set[str] = IMAGE_TYPES) -> tuple[Message, ...]:
    """The request's messages; what is left in a message's `attachments` goes to the model as images beside its text.

    `types` are those that the family takes. Each attachment left is of one of them, and its content, not empty, is in
    `request.contents`. A text file whose content is there stands in the text, in a block that names it. Every other
    attachment became a line of the text that names it and says why it cannot be seen. Idempotent.
    """
    messages = request.messages
    if not any(isinstance(message, UserMessage) and message.attachments for message in messages):
        return messages
    oldest = oldest_with_images(messages)
    return tuple(
        _shown(message, request, types, is_old=place < oldest)
        if isinstance(message, UserMessage) and message.attachments
        else message
        for place, message in enumerate(messages)
    )


def image_base64(request: ModelRequest, image: Attachment) -> str:
    """The content of an attachment that `shown_messages` left, as the JSON of every family holds it."""
    return b64encode(request.contents[image.blob_hash]).decode("ascii")


def _shown(message: UserMessage, request: ModelRequest, types: Set[str], *, is_old: bool) -> UserMessage:
    images: list[Attachment] = []
    notes: list[str] = []
    for attachment in message.attachments:
        if (block := _text_block(attachment, request)) is not None:
            notes.append(block)
        elif hindrance := _hindrance(attachment, request, types, is_old=is_old):
            notes.append(f"[{_name(attachment)}: {hindrance}]")
        else:
            images.append(attachment)
    if not notes:
        return message
    text = "\n".join([*([message.text] if message.text.strip() else []), *notes])
    return replace(message, text=text, attachments=tuple(images))


def _text_block(attachment: Attachment, request: ModelRequest) -> str | None:
    """A text file as the model reads it; None when it is none, or its content is not here."""
    content = request.contents.get(attachment.blob_hash)
    if not attachment.is_text or content is None:
        return None
    text = content.decode("utf-8", "replace")
    fence = "```"
    while fence in text:
        fence += "`"
    return f"[{_name(attachment)}]\n{fence}\n{text}\n{fence}"


def _hindrance(attachment: Attachment, request: ModelRequest, types: Set[str], *, is_old: bool) -> str:
    """Why the model does not get the content; "" if it does."""
    if not attachment.is_image:
        return f"attached file, {attachment.mime_type or 'type not known'}, {attachment.size_bytes} bytes"
    if not request.facts.accepts_images:
        return "attached image, not shown because this model does not take images"
    if attachment.mime_type not in types:
        return f"attached image, not shown because this model does not take {attachment.mime_type}"
    if is_old:
        return "attached image, already processed"
    if not request.contents.get(attachment.blob_hash):
        return "attached image, its content is not available"
    return ""


def _name(attachment: Attachment) -> str:
    return " ".join(attachment.name.split())[:_MAX_NAME_CHARS] or "attachment"
