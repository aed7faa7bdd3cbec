"""The contents of attachments that a model call may need: read from the disk before it, bounded, kept nowhere."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from lanewayd.messages import Attachment, Message, UserMessage
from lanewayd.providers.interface import oldest_with_images
from lanewayd.runs.collaborators import BlobReader

MAX_CALL_BYTES = 25 * 1024 * 1024
"""Contents in one model call; the newest attachments come first."""


class Attachments:
    """Implements loop.interface.Contents."""

    def __init__(
        self,
        blobs: BlobReader,
        *,
        owned: Callable[[Collection[str]], Awaitable[Collection[str]]],
        sees_images: bool,
    ) -> None:
        """`owned`: which of these hashes a message of the run's tenant came with. A transcript that was imported may
        name any hash, and must not show what somebody else sent. `sees_images`: a model of the run takes images."""
        self._blobs = blobs
        self._owned = owned
        self._sees_images = sees_images

    async def of(self, messages: Sequence[Message]) -> Mapping[str, bytes]:
        """By hash, of text files, and of images that may be shown, the newest first as far as MAX_CALL_BYTES go."""
        wanted = wanted_contents(messages, sees_images=self._sees_images)
        if not wanted:
            return {}
        owned = await self._owned([attachment.blob_hash for attachment in wanted])
        contents: dict[str, bytes] = {}
        left = MAX_CALL_BYTES
        for attachment in wanted:
            if attachment.blob_hash not in owned or attachment.size_bytes > left:
                continue
            content = await self._blobs.read(attachment.blob_hash)
            if content is not None and len(content) <= left:
                contents[attachment.blob_hash] = content
                left -= len(content)
        return contents


def wanted_contents(messages: Sequence[Message], *, sees_images: bool) -> list[Attachment]:
    """The attachments whose contents a model call can use, newest message first, each hash once. Pure."""
    places = [
        place for place, message in enumerate(messages) if isinstance(message, UserMessage) and message.attachments
    ]
    if not places:
        return []
    oldest = oldest_with_images(messages) if sees_images else len(messages)
    wanted: dict[str, Attachment] = {}
    for place in reversed(places):
        message = messages[place]
        for attachment in message.attachments if isinstance(message, UserMessage) else ():
            if attachment.is_text or (attachment.is_image and place >= oldest):
                wanted.setdefault(attachment.blob_hash, attachment)
    return list(wanted.values())
