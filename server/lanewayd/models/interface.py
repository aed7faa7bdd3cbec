"""What a run's chain of models asks of the credentials: a protocol, implemented by models/profiles.py.

A provider whose settings give it one key has one credential, named "": it is always usable, and nobody counts its
failures. Health is counted of credentials that have names.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from lanewayd.messages import FailureClass


@dataclass(frozen=True, slots=True)
class Cooling:
    """Credentials are left, but each of them is in a failure window. Of the window that is over first:"""

    profile: str
    kind: FailureClass
    """Why it was opened."""
    ends_in_s: float


class Profiles(Protocol):
    """The credentials of all providers, with their health. Names are those of the settings; "" = the only one."""

    def count(self, provider: str) -> int:
        """How many credentials the provider has; at least 1."""

    async def pick(
        self, provider: str, model: str, *, session_id: str, tried: Collection[str] = ()
    ) -> str | Cooling | None:
        """The credential to use for `model`: the session's own while it can be used, else the next in order, which is
        the session's from now on. None: all of them are in `tried`."""

    def cooling(self, provider: str, model: str) -> Cooling | None:
        """Set when none of the provider's credentials can be used for `model` now. Changes nothing."""

    async def refresh(self, provider: str, profile: str) -> bool:
        """Read the credential anew, as it was refused; whether it is another one now (R-4.45)."""

    async def failed(
        self, provider: str, model: str, profile: str, kind: FailureClass, *, retry_after_s: float | None = None
    ) -> None:
        """A call with it failed for a reason that says something about it. `retry_after_s`: the server named it."""

    async def succeeded(self, provider: str, profile: str) -> None:
        """A call with it was answered: its failures are forgotten (R-4.49)."""


class SoleCredentials:
    """Implements Profiles where no provider has more than one key."""

    def count(self, provider: str) -> int:
        return 1

    async def pick(
        self, provider: str, model: str, *, session_id: str, tried: Collection[str] = ()
    ) -> str | Cooling | None:
        return None if "" in tried else ""

    def cooling(self, provider: str, model: str) -> Cooling | None:
        return None

    async def refresh(self, provider: str, profile: str) -> bool:
        return False

    async def failed(
        self, provider: str, model: str, profile: str, kind: FailureClass, *, retry_after_s: float | None = None
    ) -> None:
        return

    async def succeeded(self, provider: str, profile: str) -> None:
        return
