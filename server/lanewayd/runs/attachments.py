"""The contents of attachments that a model call may need: read from the disk before it, bounded, kept nowhere."""

from collections.abc import Mapping, Sequence

from lanewayd.messages import Message, UserMessage
from lanewayd.runs.collaborators import BlobReader

MAX_CALL_BYTES = 25 * 1024 * 1024
"""Contents in one model call; the newest attachments come first."""


class Attachments:
    """Implements loop.interface.Contents."""

    def __init__(self, blobs: BlobReader) -> None:
        self._blobs = blobs

    async def of(self, messages: Sequence[Message]) -> Mapping[str, bytes]:
        """By hash, of images and text files, the newest first as far as MAX_CALL_BYTES go."""
        contents: dict[str, bytes] = {}
        left = MAX_CALL_BYTES
        for message in reversed(messages):
            if not isinstance(message, UserMessage):
                continue
            for attachment in message.attachments:
                is_wanted = attachment.is_image or attachment.is_text
                if not is_wanted or attachment.blob_hash in contents or attachment.size_bytes > left:
                    continue
                content = await self._blobs.read(attachment.blob_hash)
                if content is not None:
                    contents[attachment.blob_hash] = content
                    left -= len(content)
        return contents
