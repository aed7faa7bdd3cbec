"""LaneBook: which queued runs may start now (D-8). Pure: no clock, no I/O, no await.

A run starts when it is not held back, its session is free, its global lane has room, its tenant may execute one more
and, for a run that recovery holds back, the recovery gate is free. A waiting session holds nothing. Among the sessions
that could start, a lane serves tenants in turn; in a tenant the session whose first run has the highest priority, then
the one that started a run longest ago. A session's runs start strictly in order.

Cost: every step is logarithmic in the waiting sessions, over many steps. Of an idle session only its last start is
remembered, for the REMEMBERED_STARTS that became idle last; the others count as never started, so they come first.
"""

import heapq
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lanewayd.records import Priority

SessionId = tuple[str, str]
"""(tenant, session key)"""

REMEMBERED_STARTS = 4096
"""Idle sessions whose last start is known, so that they do not overtake those which have waited meanwhile."""

FEW_ENTRIES = 64
"""Stale candidates are let be as long as they are no more."""

Entry = tuple[int, int, int, str]
"""A candidate: (-priority, last start, number of the entry, session key)"""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A run that waits for its turn."""

    run_id: str
    tenant: str
    session_key: str
    lane: str
    priority: Priority = Priority.FOREGROUND
    is_gated: bool = False
    """Must also pass the recovery gate, which one run at a time holds (D-2)."""
    is_held: bool = False
    """Does not start, and what is behind it in its session neither, until `let_go`."""
    accepted_no: int = 0
    """Order of arrival."""


@dataclass(slots=True)
class _Session:
    waiting: OrderedDict[str, Ticket] = field(default_factory=OrderedDict)
    """run id -> ticket, in the order in which they start"""
    active: Ticket | None = None
    holds_slot: bool = False
    is_executing: bool = False
    """Its active run has not ended."""
    last_started: int = 0
    entry_no: int = 0
    """Names the newest heap entry of this session; older ones are stale."""
    held: set[str] = field(default_factory=set)
    """Waiting runs that are not let go yet."""

    @property
    def first(self) -> Ticket:
        return next(iter(self.waiting.values()))

    @property
    def last(self) -> Ticket:
        return next(reversed(self.waiting.values()))


@dataclass(slots=True)
class _Lane:
    width: int
    active: int = 0
    queued: int = 0
    ready: OrderedDict[str, list[Entry]] = field(default_factory=OrderedDict)
    """tenant -> heap of candidates; the first tenant is served next."""


class LaneBook:
    """Owner of every ticket from `enqueue` until `release` or `cancel`."""

    def __init__(
        self,
        widths: Mapping[str, int],
        *,
        default_width: int = 1,
        nested_width: int = 8,
        tenant_width: int | None = None,
    ) -> None:
        """`widths`: the configured lanes. `nested.<depth>` lanes are `nested_width` wide, others `default_width`.

        `tenant_width`: active runs of a tenant at most, over all lanes; None = no limit.
        """
        self._widths = dict(widths)
        self._default_width = default_width
        self._nested_width = nested_width
        self._tenant_width = tenant_width
        self._lanes: dict[str, _Lane] = {}
        self._sessions: dict[SessionId, _Session] = {}
        self._sessions_of: dict[str, SessionId] = {}
        self._idle_starts: OrderedDict[SessionId, int] = OrderedDict()
        self._gate_holder: str | None = None
        self._gate_queue: deque[SessionId] = deque()
        self._started = 0
        self._entries = 0
        self._queued: Counter[str] = Counter()
        self._active: Counter[str] = Counter()
        """Tenant -> runs; a tenant without any has no entry."""
        self._started_runs = 0

    @property
    def queued(self) -> int:
        """Runs waiting, over all lanes."""
        return len(self._sessions_of) - self._started_runs

    @property
    def active(self) -> int:
        """Runs started and not released."""
        return self._started_runs

    def queued_of(self, tenant: str) -> int:
        """Runs of a tenant that wait."""
        return self._queued[tenant]

    def active_of(self, tenant: str) -> int:
        """Runs of a tenant that are started and have not ended."""
        return self._active[tenant]

    @property
    def is_empty(self) -> bool:
        """Nothing waits, nothing is active, and no session, lane or gate entry is left behind.

        The last starts of idle sessions do not count: they are bounded.
        """
        is_left = self._sessions or self._sessions_of or self._lanes or self._gate_holder or self._gate_queue
        return not (is_left or self._queued or self._active)

    def active_tickets(self) -> list[tuple[Ticket, int]]:
        """Each started run that was not released, with the number of runs that wait behind it."""
        sessions = self._sessions.values()
        return [(each.active, len(each.waiting)) for each in sessions if each.active is not None]

    def overdue(self) -> list[tuple[Ticket, int]]:
        """First runs of sessions that could start and have not been, with the number of runs that wait in each; none
        after `admit`."""
        return [
            (session.first, len(session.waiting))
            for session in self._sessions.values()
            if session.waiting and session.active is None and self._may_start(session.first, session)
        ]

    def _may_start(self, ticket: Ticket, session: _Session) -> bool:
        lane = self._lanes[ticket.lane]
        is_held_back = ticket.run_id in session.held or (ticket.is_gated and self._gate_holder is not None)
        has_turn = self._tenant_width is None or self._active[ticket.tenant] < self._tenant_width
        return not is_held_back and has_turn and lane.active < lane.width

    def lanes(self) -> list[tuple[str, int, int, int]]:
        """(name, width, active, queued) of the configured lanes and of those in use, by name."""
        rows = {name: (name, width, 0, 0) for name, width in self._widths.items()}
        rows.update({name: (name, lane.width, lane.active, lane.queued) for name, lane in self._lanes.items()})
        return [rows[name] for name in sorted(rows)]

    def enqueue(self, ticket: Ticket, *, is_first: bool = False) -> None:
        """Take a ticket in, before the waiting ones of its session that came later: it may have waited elsewhere.
        `is_first`: before all of them (an interrupted run)."""
        session_id = (ticket.tenant, ticket.session_key)
        if ticket.run_id in self._sessions_of:
            raise ValueError(f"run {ticket.run_id} is already in the book")
        session = self._sessions.get(session_id)
        if session is None:
            session = self._sessions[session_id] = _Session(last_started=self._idle_starts.pop(session_id, 0))
        self._sessions_of[ticket.run_id] = session_id
        self._queued[ticket.tenant] += 1
        self._lane(ticket.lane).queued += 1
        first_before = session.first if session.waiting else None
        is_late = bool(session.waiting) and session.last.accepted_no > ticket.accepted_no
        session.waiting[ticket.run_id] = ticket
        if ticket.is_held:
            session.held.add(ticket.run_id)
        if is_first:
            session.waiting.move_to_end(ticket.run_id, last=False)
        elif is_late:
            later = [each.run_id for each in session.waiting.values() if each.accepted_no > ticket.accepted_no]
            for run_id in later:
                session.waiting.move_to_end(run_id)
        if session.active is None and session.first is not first_before:
            self._offer(session_id, session)

    def admit(self) -> list[Ticket]:
        """Move every ticket that may start to active; return them in the order of their start."""
        admitted: list[Ticket] = []
        for name in list(self._lanes):
            lane = self._lanes[name]
            while lane.active < lane.width:
                session_id = self._next_ready(lane)
                if session_id is None:
                    break
                admitted.append(self._start(session_id, lane))
        return admitted

    def let_go(self, run_ids: Iterable[str]) -> None:
        """These runs are held no longer; harmless for those that do not wait."""
        for run_id in run_ids:
            session_id = self._sessions_of.get(run_id)
            session = self._sessions[session_id] if session_id is not None else None
            if session_id is None or session is None or run_id not in session.held:
                continue
            session.held.discard(run_id)
            if session.active is None and session.first.run_id == run_id:
                self._offer(session_id, session)

    def release(self, run_id: str) -> None:
        """The active run's task is gone: its session and its place in the lane are free."""
        session_id = self._sessions_of[run_id]
        session = self._sessions[session_id]
        ticket = session.active
        if ticket is None or ticket.run_id != run_id:
            raise ValueError(f"run {run_id} is not active")
        del self._sessions_of[run_id]
        self._free_slot(session, ticket)
        self._stop_executing(session, ticket)
        session.active = None
        self._started_runs -= 1
        self.leave_gate(run_id)
        if session.waiting:
            self._offer(session_id, session)
        else:
            self._forget(session_id, session)

    def ended(self, run_id: str) -> None:
        """The run has ended, though its task may still be there: its tenant may execute another one. Harmless for any
        other run."""
        session_id = self._sessions_of.get(run_id)
        session = self._sessions[session_id] if session_id is not None else None
        if session is not None and session.active is not None and session.active.run_id == run_id:
            self._stop_executing(session, session.active)

    def free_slot(self, run_id: str) -> None:
        """The active run gives its place in the lane back, but keeps its session: its task still unwinds (R-2.24)."""
        session = self._sessions[self._sessions_of[run_id]]
        if session.active is not None and session.active.run_id == run_id:
            self._free_slot(session, session.active)

    def cancel(self, run_id: str) -> bool:
        """Take a waiting ticket out; False when the run is not waiting (active or unknown)."""
        session_id = self._sessions_of.get(run_id)
        if session_id is None:
            return False
        session = self._sessions[session_id]
        ticket = session.waiting.get(run_id)
        if ticket is None:
            return False
        was_first = session.first is ticket
        del session.waiting[run_id]
        session.held.discard(run_id)
        del self._sessions_of[run_id]
        _count_down(self._queued, ticket.tenant)
        self._lanes[ticket.lane].queued -= 1
        if session.active is None and was_first:
            session.entry_no = 0
            if session.waiting:
                self._offer(session_id, session)
            self._drop_stale(self._lanes[ticket.lane], ticket.tenant)
        if session.active is None and not session.waiting:
            self._forget(session_id, session)
        self._drop_lane_if_idle(ticket.lane)
        return True

    def leave_gate(self, run_id: str) -> None:
        """`run_id` got on: the next gated run may pass. Harmless when it does not hold the gate."""
        if self._gate_holder != run_id:
            return
        self._gate_holder = None
        waiting, self._gate_queue = self._gate_queue, deque()
        for session_id in waiting:
            session = self._sessions.get(session_id)
            if session is not None and session.active is None and session.waiting:
                self._offer(session_id, session)

    def _forget(self, session_id: SessionId, session: _Session) -> None:
        """The session is idle: only the time of its last start is kept, for a while."""
        del self._sessions[session_id]
        if session.last_started:
            self._idle_starts[session_id] = session.last_started
            if len(self._idle_starts) > REMEMBERED_STARTS:
                self._idle_starts.popitem(last=False)

    def _stop_executing(self, session: _Session, ticket: Ticket) -> None:
        if session.is_executing:
            session.is_executing = False
            _count_down(self._active, ticket.tenant)

    def _free_slot(self, session: _Session, ticket: Ticket) -> None:
        if session.holds_slot:
            session.holds_slot = False
            self._lanes[ticket.lane].active -= 1
            self._drop_lane_if_idle(ticket.lane)

    def _lane(self, name: str) -> _Lane:
        lane = self._lanes.get(name)
        if lane is None:
            nested = self._nested_width if name.startswith("nested.") else self._default_width
            lane = self._lanes[name] = _Lane(width=self._widths.get(name, nested))
        return lane

    def _drop_lane_if_idle(self, name: str) -> None:
        lane = self._lanes[name]
        if not lane.active and not lane.queued:
            del self._lanes[name]

    def _offer(self, session_id: SessionId, session: _Session) -> None:
        """Put a free session with a waiting run among the candidates of that run's lane, unless that run is held."""
        ticket = session.first
        if ticket.run_id in session.held:
            session.entry_no = 0
            return
        self._entries += 1
        session.entry_no = self._entries
        heap = self._lane(ticket.lane).ready.setdefault(session_id[0], [])
        heapq.heappush(heap, (-int(ticket.priority), session.last_started, session.entry_no, session_id[1]))

    def _next_ready(self, lane: _Lane) -> SessionId | None:
        """The session the lane serves next, taken from its candidates; its tenant goes to the end of the turn.

        A tenant that executes as much as it may keeps its place.
        """
        passed_over: list[tuple[str, list[Entry]]] = []
        session_id = None
        while lane.ready and session_id is None:
            tenant, heap = next(iter(lane.ready.items()))
            if self._tenant_width is not None and self._active[tenant] >= self._tenant_width:
                del lane.ready[tenant]
                while heap and self._current(tenant, heap[0]) is None:
                    heapq.heappop(heap)
                if heap:
                    passed_over.append((tenant, heap))
                continue
            session_id = self._take_candidate(tenant, heap)
            if session_id is None:
                del lane.ready[tenant]
            else:
                lane.ready.move_to_end(tenant)
        for tenant, heap in reversed(passed_over):
            lane.ready[tenant] = heap
            lane.ready.move_to_end(tenant, last=False)
        return session_id

    def _take_candidate(self, tenant: str, heap: list[Entry]) -> SessionId | None:
        """The first of a tenant's sessions that may start; those that the recovery gate holds back queue there."""
        while heap:
            entry = heapq.heappop(heap)
            session = self._current(tenant, entry)
            if session is None:
                continue
            session_id = (tenant, entry[3])
            if not (session.first.is_gated and self._gate_holder is not None):
                return session_id
            self._gate_queue.append(session_id)
        return None

    def _current(self, tenant: str, entry: Entry) -> _Session | None:
        """The session that waits under `entry`; None when the entry is stale."""
        session = self._sessions.get((tenant, entry[3]))
        if session is None or session.active is not None or session.entry_no != entry[2]:
            return None
        return session

    def _drop_stale(self, lane: _Lane, tenant: str) -> None:
        """Keep the candidates of a tenant in proportion to what waits, however much is cancelled in a full lane."""
        heap = lane.ready.get(tenant, [])
        if len(heap) > 2 * lane.queued + FEW_ENTRIES:
            heap[:] = [entry for entry in heap if self._current(tenant, entry) is not None]
            heapq.heapify(heap)

    def _start(self, session_id: SessionId, lane: _Lane) -> Ticket:
        session = self._sessions[session_id]
        _, ticket = session.waiting.popitem(last=False)
        session.active = ticket
        session.holds_slot = session.is_executing = True
        self._started += 1
        session.last_started = self._started
        lane.active += 1
        lane.queued -= 1
        _count_down(self._queued, ticket.tenant)
        self._active[ticket.tenant] += 1
        self._started_runs += 1
        if ticket.is_gated:
            self._gate_holder = ticket.run_id
        return ticket


def _count_down(counts: Counter[str], tenant: str) -> None:
    counts[tenant] -= 1
    if not counts[tenant]:
        del counts[tenant]
