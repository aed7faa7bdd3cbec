"""Processes that earlier starts of this service left behind, and those of one call (D-2).

Every child carries `LANEWAY_OWNER=<home id>/<server start id>` and `LANEWAY_CALL_ID`. They are found by what they
carry, not by who their parent is: parents die first. Nothing else is ever signalled. What drops both variables and
leaves its session (`env -i setsid ...`) is found only while a parent of it lives.
"""

from dataclasses import dataclass

from lanewayd.clock import Clock
from lanewayd.tools.processes import (
    ProcessHandle,
    end_processes,
    environment_of,
    hold,
    living_processes,
    with_descendants,
)

OWNER_VARIABLE = "LANEWAY_OWNER"
CALL_VARIABLE = "LANEWAY_CALL_ID"
RUN_VARIABLE = "LANEWAY_RUN_ID"
GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class Owner:
    """One start of the service on one home."""

    home_id: str
    start_id: str

    def __post_init__(self) -> None:
        if not self.home_id or not self.start_id or "/" in self.home_id or "/" in self.start_id:
            raise ValueError("home id and start id are needed, without '/'")

    def __str__(self) -> str:
        return f"{self.home_id}/{self.start_id}"


def find_call(owner: Owner, run_id: str, call_id: str, *, session_id: int | None = None) -> list[ProcessHandle]:
    """What one call started and is alive: by what it carries, by its process session, and what descends from those."""
    wanted = {
        f"{OWNER_VARIABLE}={owner}".encode(),
        f"{RUN_VARIABLE}={run_id}".encode(),
        f"{CALL_VARIABLE}={call_id}".encode(),
    }
    living = living_processes()
    marked = [pid for pid, stat in living.items() if stat.session_id == session_id or wanted <= environment_of(pid)]
    return hold(living[pid] for pid in with_descendants(marked, living))


def find_other_starts(owner: Owner) -> list[ProcessHandle]:
    """What other starts of the service on the same home left alive."""
    own = f"{OWNER_VARIABLE}={owner}".encode()
    prefix = f"{OWNER_VARIABLE}={owner.home_id}/".encode()

    def is_left_over(pid: int) -> bool:
        return any(entry.startswith(prefix) and entry != own for entry in environment_of(pid))

    living = living_processes()
    return hold(stat for pid, stat in living.items() if is_left_over(pid))


class Leftovers:
    """Ends them: TERM, two seconds, KILL, and waits for their death."""

    def __init__(self, *, owner: Owner, clock: Clock) -> None:
        self._owner = owner
        self._clock = clock

    async def end_of_other_starts(self) -> int:
        """For the start of the service, before recovery. Returns how many there were."""
        return await end_processes(lambda: find_other_starts(self._owner), clock=self._clock, grace_s=GRACE_S)
