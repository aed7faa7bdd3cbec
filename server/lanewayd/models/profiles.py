"""The credentials of all providers: which one a call uses, and what its outcome says about it (spec 04, 4).

Implements models.interface.Profiles. Owner of their health, which it keeps in memory and writes down through
CredentialRecords; who stays with which credential is asked of the records each time, so nothing grows with the
sessions. Records that cannot be read or written cost their memory only: a run never fails for them.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from lanewayd.clock import Clock
from lanewayd.errors import LanewayError
from lanewayd.messages import FailureClass
from lanewayd.models.credential_health import (
    UNUSED,
    ProfileHealth,
    after_failure,
    after_success,
    after_use,
    all_cooling,
    health_from_json,
    health_to_json,
    in_order,
    window_of,
)
from lanewayd.models.interface import Cooling

logger = logging.getLogger(__name__)

SOLE = ""
"""The name of a provider's only credential."""


@dataclass(frozen=True, slots=True)
class ProfileGroup:
    """The credentials of one provider that can be used, by name. `is_explicit`: somebody has put them in order."""

    names: tuple[str, ...]
    is_explicit: bool = False


class Credentials(Protocol):
    """The credentials themselves, which nobody here sees."""

    def reread(self, provider: str, profile: str) -> bool:
        """Read it anew; whether it is another one than was given out last."""

    def mark(self, provider: str, profile: str) -> str:
        """The same as long as the credential is; it gives nothing away."""


class CredentialRecords(Protocol):
    """What outlives the process. Methods raise LanewayError when that cannot be had."""

    async def credential_health(self) -> list[tuple[str, str, str]]:
        """All that was saved: provider, profile, state."""

    async def save_credential_health(self, provider: str, profile: str, state_json: str) -> None:
        """Put the state in the place of the last one."""

    async def credential_pin(self, session_id: str, provider: str) -> str:
        """The profile that the session stays with; "" = none."""

    async def pin_credential(self, session_id: str, provider: str, profile: str) -> None:
        """The session stays with it until it is pinned to another one, reset or deleted."""


class CredentialProfiles:
    """Implements Profiles. `groups` has the providers with more than one credential; all others have one, "", whose
    failures nobody counts: there is nothing to use in its place."""

    def __init__(self, groups: Mapping[str, ProfileGroup], *, clock: Clock, credentials: Credentials) -> None:
        self._groups = {provider: group for provider, group in groups.items() if len(group.names) > 1}
        self._clock = clock
        self._credentials = credentials
        self._records: CredentialRecords | None = None
        self._healths: dict[str, dict[str, ProfileHealth]] = {provider: {} for provider in self._groups}

    async def open(self, records: CredentialRecords) -> None:
        """Go on with what earlier processes have written down, and write down into the same."""
        self._records = records
        if not self._groups:
            return
        try:
            rows = await records.credential_health()
        except LanewayError as error:
            logger.warning("the health of credentials cannot be read", extra={"reason": error.code.value})
            return
        for provider, profile, state_json in rows:
            if profile not in self._names(provider):
                continue
            try:
                self._healths[provider][profile] = health_from_json(state_json)
            except ValueError:
                logger.warning(
                    "the health of a credential is not understood", extra={"provider": provider, "profile": profile}
                )

    # --- Profiles ----------------------------------------------------------------------------------------------------

    def count(self, provider: str) -> int:
        return max(1, len(self._names(provider)))

    async def pick(
        self, provider: str, model: str, *, session_id: str, tried: Collection[str] = ()
    ) -> str | Cooling | None:
        group = self._groups.get(provider)
        if group is None:
            return None if SOLE in tried else SOLE
        names = [name for name in group.names if name not in tried]
        if not names:
            return None
        pinned = await self._pin_of(session_id, provider)
        if (cooling := self._cooling(provider, names, model)) is not None:
            return cooling
        now, healths = self._clock.now(), self._healths_of(provider, names)
        is_kept = pinned in names and window_of(healths[pinned], model, now) is None
        name = pinned if is_kept else in_order(names, healths, model, now, is_explicit=group.is_explicit)[0]
        self._healths[provider][name] = after_use(healths[name], now)
        if not is_kept:
            await self._pin(session_id, provider, name)
        return name

    def cooling(self, provider: str, model: str) -> Cooling | None:
        return self._cooling(provider, self._names(provider), model)

    async def refresh(self, provider: str, profile: str) -> bool:
        return self._credentials.reread(provider, profile)

    async def failed(
        self, provider: str, model: str, profile: str, kind: FailureClass, *, retry_after_s: float | None = None
    ) -> None:
        if profile not in self._names(provider):
            return
        now, health = self._clock.now(), self._health(provider, profile)
        after = after_failure(health, kind, model, now, retry_after_s=retry_after_s)
        if after is health:
            return
        opened = after.cooldown_until != health.cooldown_until or after.disabled_until != health.disabled_until
        window = window_of(after, model, now)
        if opened and window is not None:
            logger.warning(
                "a credential is not used for a while",
                extra={
                    "provider": provider,
                    "profile": profile,
                    "reason": kind.value,
                    "until": window.until.isoformat(timespec="seconds"),
                    "only_model": "" if after.disabled_until == window.until else after.cooldown_model,
                },
            )
        await self._save(provider, profile, replace(after, mark=self._credentials.mark(provider, profile)))

    async def succeeded(self, provider: str, profile: str) -> None:
        if profile not in self._names(provider):
            return
        health = self._health(provider, profile)
        after = after_success(health)
        if after != health:
            logger.info("a credential works again", extra={"provider": provider, "profile": profile})
            await self._save(provider, profile, after)

    # --- state -------------------------------------------------------------------------------------------------------

    def _names(self, provider: str) -> tuple[str, ...]:
        group = self._groups.get(provider)
        return group.names if group is not None else ()

    def _cooling(self, provider: str, names: Collection[str], model: str) -> Cooling | None:
        now = self._clock.now()
        closed = all_cooling(names, self._healths_of(provider, names), model, now)
        if closed is None:
            return None
        name, window = closed
        return Cooling(name, window.reason, (window.until - now).total_seconds())

    def _healths_of(self, provider: str, names: Collection[str]) -> dict[str, ProfileHealth]:
        return {name: self._health(provider, name) for name in names}

    def _health(self, provider: str, profile: str) -> ProfileHealth:
        """What is known of the credential as it is now: of another one in its place nothing is."""
        health = self._healths[provider].get(profile, UNUSED)
        if health.mark and health.mark != self._credentials.mark(provider, profile):
            logger.info("a credential was replaced", extra={"provider": provider, "profile": profile})
            health = self._healths[provider][profile] = after_success(health)
        return health

    async def _save(self, provider: str, profile: str, health: ProfileHealth) -> None:
        self._healths[provider][profile] = health
        if self._records is None:
            return
        try:
            await self._records.save_credential_health(provider, profile, health_to_json(health))
        except LanewayError as error:
            logger.warning("the health of a credential was not saved", extra={"reason": error.code.value})

    async def _pin_of(self, session_id: str, provider: str) -> str:
        if self._records is None:
            return ""
        try:
            return await self._records.credential_pin(session_id, provider)
        except LanewayError:
            return ""  # the store says so itself, loudly

    async def _pin(self, session_id: str, provider: str, profile: str) -> None:
        if self._records is None:
            return
        try:
            await self._records.pin_credential(session_id, provider, profile)
        except LanewayError as error:
            logger.warning("the credential of a session was not saved", extra={"reason": error.code.value})
