"""How large things may be on the wire: what callers may send (settings) and what the server sends (fixed)."""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB

MAX_MESSAGE_BYTES = MIB
"""No message of the server is larger: clients refuse more than 4 MiB and then lose the whole stream."""

MAX_TEXT_BYTES = MAX_MESSAGE_BYTES - 64 * KIB
"""All free texts of one message together; the rest is for ids, metadata and framing."""

MAX_OUTPUT_BYTES = 384 * KIB
"""A structured answer; a larger one is in the text only."""

MAX_PIECE_BYTES = 512 * KIB
"""One piece of a text that is sent in pieces."""

MAX_NAME_BYTES = 512
"""Ids, names and single words that other programs gave: longer ones are cut on their way out."""

MAX_ERROR_TEXT_BYTES = 1000
"""The text of a status, and of a RunError."""

MAX_RECEIVE_BYTES = 32 * MIB
"""Transport limit; above all limits of ours, because gRPC's own refusal carries no reason."""

MAX_SEND_BYTES = 4 * MIB
"""Transport limit; never reached, see MAX_MESSAGE_BYTES."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold, in UTF-8 bytes unless said otherwise. `app` fills it from the settings."""

    message_bytes: int = MIB
    session_key_bytes: int = 512
    idempotency_key_bytes: int = 128
    metadata_keys: int = 32
    metadata_text_bytes: int = 512
    """One key, and one value."""
    extra_system_prompt_bytes: int = 64 * KIB
    response_schema_bytes: int = 64 * KIB
    """As JSON."""
    attachment_bytes: int = 20 * MIB
    attachments_bytes: int = 25 * MIB
    """All of one message."""
    name_bytes: int = MAX_NAME_BYTES
    """Each short text that is kept: agent, model, lane, label, route, provenance, names of tools."""
    tool_names: int = 1024
    """Entries of `tools_allow`, and of `tools_deny`."""
    abort_reason_bytes: int = 512
    import_bytes: int = 64 * MIB
    """All lines of one import: they are kept in memory until the last one is there."""
    import_line_bytes: int = 4 * MIB
    """One of its lines: it is parsed in one go, and the event loop waits for that."""
    import_lines: int = 20_000
    open_imports: int = 4
    """Of one tenant."""
