"""Frames that repeat the text so far instead of continuing it (spec 05, R-5.48). Pure.

A delta that begins with all text so far is such a frame, unless that can be chance: short or repetitive texts ("ha",
then "ha") do go on like that.
"""

_SHORTEST = 4
_NEVER_CHANCE = 16


class ResendFilter:
    """Owns the raw text of one answer and lets through what is new."""

    def __init__(self) -> None:
        self._frames: list[str] = []
        self._size = 0

    def new_part(self, frame: str, *, is_whole: bool) -> str:
        """What `frame` adds. `is_whole`: the server calls it the whole message."""
        added = frame
        if 0 < self._size <= len(frame):
            so_far = "".join(self._frames)
            if frame.startswith(so_far) and (is_whole or self._is_no_chance(so_far, frame)):
                added = frame[self._size :]
        if added:
            self._frames.append(added)
            self._size += len(added)
        return added

    def _is_no_chance(self, so_far: str, frame: str) -> bool:
        if len(so_far) < _SHORTEST or so_far in (so_far + so_far)[1:-1]:
            return False
        return len(frame) > len(so_far) or len(self._frames) > 1 or len(so_far) >= _NEVER_CHANCE
