"""Which contents of attachments a model call gets."""

from collections.abc import Collection, Mapping, Sequence

from lanewayd.messages import AssistantMessage, Attachment, Message, StopReason, Text, UserMessage
from lanewayd.runs.attachments import MAX_CALL_BYTES, Attachments

MIB = 1024 * 1024


class BlobsInMemory:
    """Implements BlobReader; contents are as long as their attachment says."""

    def __init__(self, **sizes: int) -> None:
        self.sizes = sizes
        self.asked: list[str] = []
        self.owners_asked: list[list[str]] = []

    async def read(self, blob_hash: str) -> bytes | None:
        self.asked.append(blob_hash)
        return bytes(self.sizes[blob_hash]) if blob_hash in self.sizes else None


def image(blob_hash: str, size_bytes: int) -> Attachment:
    return Attachment(f"{blob_hash}.png", "image/png", blob_hash, size_bytes)


def said(*attachments: Attachment) -> Message:
    return UserMessage("look", attachments)


async def of(
    blobs: BlobsInMemory, messages: Sequence[Message], *, owned: Collection[str] | None = None, sees_images: bool = True
) -> Mapping[str, bytes]:
    """The contents; of all hashes unless `owned` says whose there are."""

    async def owned_of(hashes: Collection[str]) -> Collection[str]:
        blobs.owners_asked.append(sorted(hashes))
        return hashes if owned is None else set(owned) & set(hashes)

    return await Attachments(blobs, owned=owned_of, sees_images=sees_images).of(messages)


async def test_nothing_is_read_for_messages_without_attachments() -> None:
    blobs = BlobsInMemory()
    answer = AssistantMessage((Text("fine"),), "acme", "m", StopReason.STOP)
    assert await of(blobs, [UserMessage("hi"), answer]) == {}
    assert (blobs.asked, blobs.owners_asked) == ([], [])


async def test_images_and_short_text_files_are_read_once_each_and_other_files_not() -> None:
    blobs = BlobsInMemory(a=3, t=5, z=9, long=9)
    files = (
        image("a", 3),
        Attachment("n.txt", "text/plain", "t", 5),
        Attachment("z.zip", "application/zip", "z", 9),
        Attachment("long.txt", "text/plain", "long", MIB),
    )
    contents = await of(blobs, [said(*files), said(image("a", 3))])
    assert {name: len(content) for name, content in contents.items()} == {"a": 3, "t": 5}
    assert sorted(blobs.asked) == ["a", "t"]


async def test_the_newest_come_first_as_far_as_a_call_may_hold() -> None:
    sizes = {"old": 10 * MIB, "middle": 20 * MIB, "new": 10 * MIB}
    messages = [said(image(name, size)) for name, size in sizes.items()]
    contents = await of(BlobsInMemory(**sizes), messages)
    assert list(contents) == ["new", "old"], "what does not fit any more is left out, what is smaller may"
    assert sum(map(len, contents.values())) <= MAX_CALL_BYTES


async def test_what_is_not_there_any_more_is_left_out() -> None:
    assert await of(BlobsInMemory(), [said(image("gone", 3))]) == {}


async def test_images_of_turns_that_are_not_shown_any_more_are_not_read_but_their_texts_are() -> None:
    answer = AssistantMessage((Text("fine"),), "acme", "m", StopReason.STOP)
    note = Attachment("n.txt", "text/plain", "t", 5)
    turns = [message for name in ("a", "b", "c", "d") for message in (said(image(name, 1)), answer)]
    blobs = BlobsInMemory(a=1, b=1, c=1, d=1, e=1, t=5)
    contents = await of(blobs, [said(note), answer, *turns, said(image("e", 1))])
    assert list(contents) == ["e", "d", "c", "b", "t"]
    assert blobs.asked == ["e", "d", "c", "b", "t"]


async def test_images_are_not_read_for_models_that_take_none() -> None:
    blobs = BlobsInMemory(a=1, t=5)
    note = Attachment("n.txt", "text/plain", "t", 5)
    assert list(await of(blobs, [said(image("a", 1), note)], sees_images=False)) == ["t"]
    assert blobs.asked == ["t"]


async def test_what_no_message_of_the_tenant_came_with_is_not_read() -> None:
    blobs = BlobsInMemory(mine=1, theirs=1)
    contents = await of(blobs, [said(image("mine", 1), image("theirs", 1))], owned=["mine"])
    assert list(contents) == ["mine"]
    assert blobs.asked == ["mine"]


async def test_a_file_that_is_longer_than_its_mention_says_does_not_break_the_bound() -> None:
    blobs = BlobsInMemory(liar=MAX_CALL_BYTES + 1)
    assert await of(blobs, [said(image("liar", 1))]) == {}
