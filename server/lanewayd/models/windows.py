"""How much of a model's context window is used, and whether that is enough to work with. Pure. Source: spec 04, 11."""

from dataclasses import dataclass
from enum import StrEnum

_LEAST_TOKENS, _LEAST_SHARE = 4_000, 0.10
_SMALL_TOKENS, _SMALL_SHARE = 8_000, 0.20


class Room(StrEnum):
    """What can be done in a window."""

    TOO_LITTLE = "too_little"
    SMALL = "small"
    ENOUGH = "enough"


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens. `native`: what the model has; `used`: what the settings leave of it."""

    native: int
    used: int

    @property
    def least(self) -> int:
        """Below this no run starts (R-4.131)."""
        return max(_LEAST_TOKENS, int(self.native * _LEAST_SHARE))

    @property
    def room(self) -> Room:
        """R-4.131, R-4.132."""
        if self.used < self.least:
            return Room.TOO_LITTLE
        is_small = self.used < max(_SMALL_TOKENS, int(self.native * _SMALL_SHARE))
        return Room.SMALL if is_small else Room.ENOUGH


def window(*, native: int, entry_tokens: int | None, agent_cap: int | None) -> Window:
    """R-4.130. `entry_tokens`: what the settings say of the model; `agent_cap` lowers that, it never raises it."""
    used = entry_tokens or native
    return Window(native, min(used, agent_cap) if agent_cap else used)
