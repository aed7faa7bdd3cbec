"""What is kept of credentials: their health, and which of them a session stays with (spec 04, 4).

Commands of the store like those of interface.py, of use to the wiring only.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SaveCredentialHealth:
    """Put the state of a credential in the place of the last one."""

    provider: str
    profile: str
    state_json: str


@dataclass(frozen=True, slots=True)
class PinCredential:
    """A session stays with a credential of a provider. Of a session that is gone nothing is kept."""

    session_id: str
    provider: str
    profile: str
