"""`AgentRequest.attachments` -> files with their types: every check that needs nothing but the request. Pure."""

import base64
import binascii
import hashlib
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from laneway.v1 import agent_pb2
from lanewayd.errors import ErrorCode, FieldError
from lanewayd.rpc.limits import Limits
from lanewayd.rpc.request_fields import check_size
from lanewayd.rpc.wire_text import has_control_characters
from lanewayd.runs.interface import NewAttachment

MOST = 20
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def new_attachments(attachments: Iterable[agent_pb2.Attachment], limits: Limits) -> tuple[NewAttachment, ...]:
    """The files of a message. Raises FieldError: FIELD_INVALID or ATTACHMENT_TOO_LARGE, `field` = attachments."""
    files = tuple(_file(attachment, limits) for attachment in attachments)
    if len(files) > MOST:
        raise _invalid(f"A message has at most {MOST} attachments.")
    if sum(len(file.data) for file in files) > limits.attachments_bytes:
        raise _too_large(f"The attachments of a message have at most {limits.attachments_bytes:,} bytes together.")
    return files


def _file(attachment: agent_pb2.Attachment, limits: Limits) -> NewAttachment:
    check_size(attachment.name, "attachments", limits.name_bytes)
    check_size(attachment.mime_type, "attachments", limits.name_bytes)
    if "/" in attachment.name or "\\" in attachment.name or has_control_characters(attachment.name):
        raise _invalid("The name of an attachment is no path and has no control characters.")
    if has_control_characters(attachment.mime_type):
        raise _invalid("The media type of an attachment has no control characters.")
    declared = attachment.mime_type.strip().lower()
    match attachment.WhichOneof("content"):
        case "data":
            data = attachment.data
        case "uri":
            declared_by_uri, data = _data_of(attachment.uri)
            declared = declared or declared_by_uri
        case _:
            raise _invalid("An attachment has either `data` or `uri`.")
    if not data:
        raise _invalid("An attachment is not empty.")
    if len(data) > limits.attachment_bytes:
        raise _too_large(f"An attachment has at most {limits.attachment_bytes:,} bytes.")
    return NewAttachment(attachment.name, _type_of(data, declared), data, hashlib.sha256(data).hexdigest())


def _data_of(uri: str) -> tuple[str, bytes]:
    """(media type, content) of a `data:` URI. Source: RFC 2397."""
    head, comma, body = uri.partition(",")
    if not head.lower().startswith("data:") or not comma:
        raise _invalid("Of URIs only `data:` is taken: the server fetches nothing; send the bytes as `data`.")
    media_type, *parameters = head[len("data:") :].split(";")
    raw = unquote_to_bytes(body)
    if "base64" not in (parameter.strip().lower() for parameter in parameters):
        return media_type.strip().lower(), raw
    try:
        return media_type.strip().lower(), base64.b64decode(raw, validate=True)
    except binascii.Error:
        raise _invalid("The `data:` URI of an attachment is not valid base64.") from None


def _type_of(data: bytes, declared: str) -> str:
    """What an image is, its bytes say; of anything else the declared type stands, if there is one."""
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature):
            return media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if not declared:
        return _undeclared_type(data)
    # A model service would refuse the whole conversation for a picture that is none.
    return "application/octet-stream" if declared.startswith("image/") and declared != "image/svg+xml" else declared


def _undeclared_type(data: bytes) -> str:
    """What it looks like; "" if that is nothing known."""
    if data.startswith(b"%PDF-"):
        return "application/pdf"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    return "" if "\0" in text else "text/plain"


def _invalid(problem: str) -> FieldError:
    return FieldError(ErrorCode.FIELD_INVALID, "attachments", problem)


def _too_large(problem: str) -> FieldError:
    return FieldError(ErrorCode.ATTACHMENT_TOO_LARGE, "attachments", problem)
