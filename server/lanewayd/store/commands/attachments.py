"""The rows of attachments: references to blobs, which go with the last one. The files are store/blobs.py's."""

from lanewayd.records import Run
from lanewayd.store.interface import FindUnnamedBlobs
from lanewayd.store.run_rows import to_json
from lanewayd.store.times import to_us
from lanewayd.store.transaction import Transaction


def put_attachments(transaction: Transaction, run: Run) -> None:
    """Name the blobs that come with a run that is being accepted; their files are synced."""
    for index, attachment in enumerate(run.request.attachments):
        name = attachment.blob_hash
        transaction.execute("insert_blob", (name, attachment.size_bytes, to_us(run.accepted_at)))
        transaction.execute("insert_attachment", (run.run_id, index, name, attachment.name, attachment.mime_type))


def drop_attachments(transaction: Transaction, run_id: str) -> list[str]:
    """Remove the references of a run; the hashes of the blobs that nobody names any more."""
    hashes = [row["blob_hash"] for row in transaction.all("select_hashes_of_run", (run_id,))]
    if not hashes:
        return []
    transaction.execute("delete_attachments", (run_id,))
    return [name for name in hashes if transaction.execute("delete_blob_without_reference", {"blob_hash": name})]


def drop_transcript_blobs(transaction: Transaction, session_id: str) -> list[str]:
    """Remove the references of a transcript's copied entries; the answer as for `drop_attachments`."""
    hashes = [row["blob_hash"] for row in transaction.all("select_hashes_of_transcript", (session_id,))]
    if not hashes:
        return []
    transaction.execute("delete_session_blobs", (session_id,))
    return [name for name in hashes if transaction.execute("delete_blob_without_reference", {"blob_hash": name})]


def find_unnamed_blobs(transaction: Transaction, command: FindUnnamedBlobs) -> frozenset[str]:
    """Those that no row names; see the command."""
    return frozenset(row["value"] for row in transaction.all("select_unnamed_hashes", (to_json(command.hashes),)))
