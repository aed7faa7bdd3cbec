"""Whether there is room for one more message, in the whole service and for its tenant."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.runs.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class AcceptLimits:
    """Limits of acceptance."""

    max_queued_runs: int
    max_depth: int
    max_session_key_bytes: int = 512
    """Of the canonical key, so that the answered key can be used again."""
    tenant_queued_runs: int | None = None
    tenant_active_runs: int | None = None
    """Of each tenant; None = no limit of its own."""


class Room:
    """Owner of the count of messages on their way into the store."""

    def __init__(self, limits: AcceptLimits, scheduler: Scheduler) -> None:
        self._limits = limits
        self._scheduler = scheduler
        self._entering: Counter[str] = Counter()

    @property
    def entering(self) -> int:
        """Messages on their way into the store."""
        return self._entering.total()

    @contextmanager
    def taken(self, tenant: str) -> Iterator[None]:
        """A message of the tenant is on its way."""
        self._entering[tenant] += 1
        try:
            yield
        finally:
            self._entering[tenant] -= 1
            if not self._entering[tenant]:
                del self._entering[tenant]

    def refusal(self, tenant: str) -> LanewayError | None:
        """What answers a new message that there is no room for."""
        book, limits = self._scheduler.book, self._limits
        if book.queued + self._scheduler.attached.count + self.entering >= limits.max_queued_runs:
            return LanewayError(ErrorCode.QUEUE_FULL, "the queue is full; repeat the call later", retry_after_s=1.0)
        waiting = book.queued_of(tenant) + self._scheduler.attached.count_of(tenant) + self._entering[tenant]
        if limits.tenant_queued_runs is not None and waiting >= limits.tenant_queued_runs:
            return _tenant_limit("limits.tenant.max_queued_runs", limits.tenant_queued_runs, "waiting")
        if limits.tenant_active_runs is not None and book.active_of(tenant) >= limits.tenant_active_runs:
            return _tenant_limit("limits.tenant.max_active_runs", limits.tenant_active_runs, "executing")
        return None


def _tenant_limit(setting: str, limit: int, what: str) -> LanewayError:
    return LanewayError(
        ErrorCode.TENANT_LIMIT,
        f"{limit} runs of this tenant are {what}, as many as `{setting}` allows; repeat the call when one has ended",
        retry_after_s=1.0,
    )
