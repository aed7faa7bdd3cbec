"""The keys of all providers: read and checked at the start, those in files again for every call (R-4.43)."""

import hashlib
from collections.abc import Mapping

from lanewayd.config import read_api_keys, read_key_file
from lanewayd.models.profiles import ProfileGroup
from lanewayd.settings.models import OWN_PROFILE, ProfileSettings
from lanewayd.settings.schema import Settings

_REMEMBERED = 8
"""Keys of one file that stay secrets after it got another one: calls with them may be under way."""


class ProviderKeys:
    """Owner of the keys. Names of profiles are those of the settings; any other name is the first that
    the provider has."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        """Reads them all. Raises StartupError for one that cannot be used."""
        self._places = {name: service.all_profiles for name, service in settings.models.providers.items()}
        self._keys = {
            name: read_api_keys(name, service, environ) for name, service in settings.models.providers.items()
        }
        self._orders = {name: settings.auth.order.get(name) or tuple(self._places[name]) for name in self._places}
        self._groups = {name: self._group_of(name, settings) for name in self._places}
        self._seen = {
            (name, profile): [key] for name, keys in self._keys.items() for profile, key in keys.items() if key
        }
        self.secrets: tuple[str, ...] = self._all_seen()
        """All that are or were in use; another tuple when one is added."""

    @property
    def groups(self) -> Mapping[str, ProfileGroup]:
        """The profiles of each provider that have a key."""
        return self._groups

    def has_key(self, provider: str) -> bool:
        """A key was found, or none is needed."""
        return not self._places[provider] or bool(self._groups[provider].names)

    def mark(self, provider: str, profile: str) -> str:
        """Three bytes of a hash: enough to see that a key was replaced, too little to guess it."""
        try:
            key = self.key(provider, profile)
        except OSError:
            key = self._keys[provider].get(profile, "")
        return hashlib.blake2b(key.encode(), digest_size=3).hexdigest()

    def sources(self, provider: str) -> str:
        """Where the keys that may be used are looked for, in words; empty if none is needed."""
        return " or ".join(self._places[provider][name].key_source for name in self._orders[provider])

    def at_start(self, provider: str, profile: str) -> str:
        """The key of a profile, "" = of the only one; empty if there is none."""
        keys = self._keys[provider]
        return keys.get(profile, "") if profile else next(iter(keys.values()), "")

    def key(self, provider: str, profile: str) -> str:
        """The key as it is now; "" = none is sent. Raises OSError when its file cannot be read."""
        name = self._name_of(provider, profile)
        place = self._places.get(provider, {}).get(name, ProfileSettings())
        if place.api_key_file is None:
            return self._keys.get(provider, {}).get(name, "")
        # What is no text is no key either: the provider refuses it, without showing it.
        key = read_key_file(place.api_key_file).decode("utf-8", "replace").strip()
        if key and key != self._keys[provider][name]:
            self._keys[provider][name] = key
            self._seen[provider, name] = [*self._seen.get((provider, name), []), key][-_REMEMBERED:]
            self.secrets = self._all_seen()
        return self._keys[provider][name]  # an empty file is about to be written: the last key stands

    def reread(self, provider: str, profile: str) -> bool:
        """Whether there is another key now than the one that was given out last."""
        before = self._keys.get(provider, {}).get(self._name_of(provider, profile), "")
        try:
            return self.key(provider, profile) != before
        except OSError:
            return False

    def _name_of(self, provider: str, profile: str) -> str:
        names = self._groups[provider].names if provider in self._groups else ()
        return profile if profile in names else names[0] if names else OWN_PROFILE

    def _group_of(self, provider: str, settings: Settings) -> ProfileGroup:
        with_key = tuple(name for name in self._orders[provider] if self._keys[provider].get(name))
        return ProfileGroup(with_key, is_explicit=provider in settings.auth.order)

    def _all_seen(self) -> tuple[str, ...]:
        return tuple(key for keys in self._seen.values() for key in keys)
