"""Which contents of attachments a model call gets."""

from lanewayd.messages import AssistantMessage, Attachment, Message, StopReason, Text, UserMessage
from lanewayd.runs.attachments import MAX_CALL_BYTES, Attachments

MIB = 1024 * 1024


class BlobsInMemory:
    """Implements BlobReader; contents are as long as their attachment says."""

    def __init__(self, **sizes: int) -> None:
        self.sizes = sizes
        self.asked: list[str] = []

    async def read(self, blob_hash: str) -> bytes | None:
        self.asked.append(blob_hash)
        return bytes(self.sizes[blob_hash]) if blob_hash in self.sizes else None


def image(blob_hash: str, size_bytes: int) -> Attachment:
    return Attachment(f"{blob_hash}.png", "image/png", blob_hash, size_bytes)


def said(*attachments: Attachment) -> Message:
    return UserMessage("look", attachments)


async def test_nothing_is_read_for_messages_without_attachments() -> None:
    blobs = BlobsInMemory()
    answer = AssistantMessage((Text("fine"),), "acme", "m", StopReason.STOP)
    assert await Attachments(blobs).of([UserMessage("hi"), answer]) == {}
    assert blobs.asked == []


async def test_images_and_short_text_files_are_read_once_each_and_other_files_not() -> None:
    blobs = BlobsInMemory(a=3, t=5, z=9, long=9)
    files = (
        image("a", 3),
        Attachment("n.txt", "text/plain", "t", 5),
        Attachment("z.zip", "application/zip", "z", 9),
        Attachment("long.txt", "text/plain", "long", MIB),
    )
    contents = await Attachments(blobs).of([said(*files), said(image("a", 3))])
    assert {name: len(content) for name, content in contents.items()} == {"a": 3, "t": 5}
    assert sorted(blobs.asked) == ["a", "t"]


async def test_the_newest_come_first_as_far_as_a_call_may_hold() -> None:
    sizes = {"old": 10 * MIB, "middle": 20 * MIB, "new": 10 * MIB}
    messages = [said(image(name, size)) for name, size in sizes.items()]
    contents = await Attachments(BlobsInMemory(**sizes)).of(messages)
    assert list(contents) == ["new", "old"], "what does not fit any more is left out, what is smaller may"
    assert sum(map(len, contents.values())) <= MAX_CALL_BYTES


async def test_what_is_not_there_any_more_is_left_out() -> None:
    assert await Attachments(BlobsInMemory()).of([said(image("gone", 3))]) == {}
