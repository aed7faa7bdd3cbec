"""Session keys and agent ids: normal forms and refusals. Pure. Source: spec 01, section 1.3; D-21."""

import re

from lanewayd.errors import ErrorCode, FieldError
from lanewayd.records import AGENT_ID, DEFAULT_AGENT

MAIN_KEY = "main"

_NOT_AGENT = re.compile(r"[^a-z0-9_-]+")


def normal_agent_id(text: str) -> str:
    """The canonical agent id: lower case, other characters become `-`, at most 64; `main` for nothing (R-1.27).

    It begins with a letter or digit, whatever `text` is: an underscore at the beginning goes as a dash does.
    """
    trimmed = text.strip().lower()
    if AGENT_ID.fullmatch(trimmed):
        return trimmed
    return _NOT_AGENT.sub("-", trimmed).lstrip("-_")[:64].rstrip("-") or DEFAULT_AGENT


def canonical_key(session_key: str, agent_id: str = "") -> str:
    """The key a session is stored under; `session_key` is not empty.

    Raises FieldError SESSION_KEY_MALFORMED for a key that begins with `agent:` and lacks its parts, and FIELD_INVALID
    (`agent_id`) when both name an agent and they differ (R-1.6, R-1.8).
    """
    key = session_key.strip().lower()
    if key in ("", MAIN_KEY):
        return f"agent:{agent_id or DEFAULT_AGENT}:{MAIN_KEY}"
    if not key.startswith("agent:"):
        return f"agent:{agent_id or DEFAULT_AGENT}:{key}"
    owner = agent_of(key)
    if agent_id and owner != agent_id:
        raise FieldError(
            ErrorCode.FIELD_INVALID, "agent_id", f"the session key belongs to agent {owner!r}, not to {agent_id!r}"
        )
    return key


def agent_of(canonical: str) -> str:
    """The agent that owns a canonical key. Raises FieldError SESSION_KEY_MALFORMED if it has no such form."""
    parts = canonical.split(":", 2)
    if len(parts) != 3 or parts[0] != "agent" or not AGENT_ID.fullmatch(parts[1]) or not parts[2].strip(":"):
        raise FieldError(
            ErrorCode.SESSION_KEY_MALFORMED, "session_key", "a key that begins with 'agent:' is agent:<agent id>:<rest>"
        )
    return parts[1]


def fork_key(agent_id: str, unique: str) -> str:
    """The key of a forked session that nobody named."""
    return f"agent:{agent_id}:fork:{unique}"


def one_off_key(agent_id: str, unique: str) -> str:
    """The key of a run that named no session (D-21)."""
    return f"agent:{agent_id}:run:{unique}"
