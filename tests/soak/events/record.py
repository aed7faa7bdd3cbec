"""What all subscribers have seen of the runs that are under way, as hashes: memory is bounded by what is under way.

A run's record goes when everybody who follows it has seen its end; a run that shows up afterwards is a violation.
"""

from array import array
from dataclasses import dataclass, field

from tests.processes.observers import is_terminal

from laneway.v1 import event_pb2

_MOST_VIOLATIONS = 1000


@dataclass
class _Record:
    awaited: int
    """Subscribers that have not seen the end yet."""
    hashes: "array[int]" = field(default_factory=lambda: array("q"))


class SharedRecord:
    """Compares what subscribers see of each (run, seq), byte for byte by 64-bit hashes."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}
        self._done: set[str] = set()
        self.deliveries = 0
        self.stored = 0
        self.violations: list[str] = []

    def open(self, run_id: str, subscribers: int) -> None:
        """So many subscribers will see the run to its end. Its first events may have been seen before."""
        self._record(run_id).awaited += subscribers

    def see(self, who: str, event: event_pb2.Event, encoded: bytes) -> None:
        """One delivery."""
        self.deliveries += 1
        if event.run_id in self._done:
            self.say(f"{who} got {event.run_id} {event.seq}, which everybody had seen to its end")
            return
        record = self._record(event.run_id)
        hashes, seen = record.hashes, hash(encoded)
        if event.seq == len(hashes) + 1:
            hashes.append(seen)
        elif event.seq > len(hashes):
            self.say(f"{who} got {event.run_id} {event.seq} before anybody got {len(hashes) + 1}")
        elif hashes[event.seq - 1] != seen:
            self.say(f"{who} got other bytes for {event.run_id} {event.seq} than somebody before")
        if is_terminal(event):
            if event.seq != len(hashes):
                self.say(f"{who} got the end of {event.run_id} as {event.seq}, others got {len(hashes)} events")
            record.awaited -= 1

    def close(self, run_id: str) -> int:
        """Everybody has seen the run's end; the number of its events."""
        record = self._records.pop(run_id)
        if record.awaited:
            self.say(f"{run_id} ended {record.awaited} times less than it has subscribers")
        self._done.add(run_id)
        self.stored += len(record.hashes)
        return len(record.hashes)

    @property
    def under_way(self) -> list[str]:
        """Runs that were seen and not closed."""
        return list(self._records)

    def say(self, text: str) -> None:
        """Note a violation."""
        if len(self.violations) < _MOST_VIOLATIONS:
            self.violations.append(text)

    def _record(self, run_id: str) -> _Record:
        record = self._records.get(run_id)
        if record is None:
            record = self._records[run_id] = _Record(0)
        return record
