"""Messages that wait to go into runs at work or about to be (D-7): which of them, into which run, and how many."""

from collections import Counter
from collections.abc import Iterable

from lanewayd.records import Run


class AttachedMessages:
    """Owner of them from their acceptance until they are taken in, withdrawn, or their host is gone.

    The row of a message that has ended names no host any more, so this remembers it.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, Run]] = {}
        """Host -> its messages by run id, in the order in which they came."""
        self._hosts: dict[str, str] = {}
        self._of_tenant: Counter[str] = Counter()
        """A tenant without any has no entry."""

    @property
    def count(self) -> int:
        """All of them."""
        return len(self._hosts)

    def count_of(self, tenant: str) -> int:
        """Those of one tenant."""
        return self._of_tenant[tenant]

    def of(self, host_run_id: str) -> Iterable[Run]:
        """Those of one host, in the order in which they came."""
        return self._waiting.get(host_run_id, {}).values()

    def add(self, run: Run) -> None:
        """A message waits for its host."""
        self._waiting.setdefault(run.host_run_id, {})[run.run_id] = run
        self._hosts[run.run_id] = run.host_run_id
        self._of_tenant[run.tenant] += 1

    def take_out(self, run_id: str) -> str:
        """A message waits no more: its host; "" for one that did not wait."""
        host = self._hosts.pop(run_id, "")
        if host:
            run = self._waiting[host].pop(run_id)
            self._count_down(run.tenant)
            if not self._waiting[host]:
                del self._waiting[host]
        return host

    def forget(self, host_run_id: str) -> None:
        """The host is gone: nothing waits for it."""
        for run in self._waiting.pop(host_run_id, {}).values():
            del self._hosts[run.run_id]
            self._count_down(run.tenant)

    def _count_down(self, tenant: str) -> None:
        self._of_tenant[tenant] -= 1
        if not self._of_tenant[tenant]:
            del self._of_tenant[tenant]
