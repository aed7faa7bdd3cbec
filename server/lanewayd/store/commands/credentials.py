"""Keeping the health of credentials, and the pins of sessions."""

from lanewayd.store.credential_commands import PinCredential, SaveCredentialHealth
from lanewayd.store.transaction import Transaction


def save_credential_health(transaction: Transaction, command: SaveCredentialHealth) -> None:
    """The row of the credential has this state."""
    transaction.execute("put_credential_health", (command.provider, command.profile, command.state_json))


def pin_credential(transaction: Transaction, command: PinCredential) -> None:
    """The session, if it is there, has this pin."""
    names = {"session_id": command.session_id, "provider": command.provider, "profile": command.profile}
    transaction.execute("put_credential_pin", names)
