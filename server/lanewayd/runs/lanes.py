"""LaneBook: which queued runs may start now (D-8). Pure: no clock, no I/O, no await.

A run starts when its session is free, its global lane has room and, for a run that recovery holds back, the recovery
gate is free. A waiting session holds nothing. Among the sessions that could start, a lane serves tenants in turn; in a
tenant the session whose first run has the highest priority, then the one that started a run longest ago. A session's
runs start strictly in order.

Cost: every step is logarithmic in the waiting sessions; an idle session leaves nothing behind.
"""

import heapq
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from lanewayd.records import Priority

SessionId = tuple[str, str]
"""(tenant, session key)"""


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


@dataclass(slots=True)
class _Session:
    waiting: deque[Ticket] = field(default_factory=deque)
    active: Ticket | None = None
    holds_slot: bool = False
    last_started: int = 0
    entry_no: int = 0
    """Names the newest heap entry of this session; older ones are stale."""


@dataclass(slots=True)
class _Lane:
    width: int
    active: int = 0
    queued: int = 0
    ready: OrderedDict[str, list[tuple[int, int, int, str]]] = field(default_factory=OrderedDict)
    """tenant -> heap of (-priority, last_started, entry_no, session key); the first tenant is served next."""


class LaneBook:
    """Owner of every ticket from `enqueue` until `release` or `cancel`."""

    def __init__(self, widths: Mapping[str, int], *, default_width: int = 1, nested_width: int = 8) -> None:
        """`widths`: the configured lanes. `nested.<depth>` lanes are `nested_width` wide, others `default_width`."""
        self._widths = dict(widths)
        self._default_width = default_width
        self._nested_width = nested_width
        self._lanes: dict[str, _Lane] = {}
        self._sessions: dict[SessionId, _Session] = {}
        self._sessions_of: dict[str, SessionId] = {}
        self._gate_holder: str | None = None
        self._gate_queue: deque[SessionId] = deque()
        self._started = 0
        self._entries = 0
        self._queued = 0

    @property
    def queued(self) -> int:
        """Runs waiting, over all lanes."""
        return self._queued

    @property
    def active(self) -> int:
        """Runs started and not released."""
        return len(self._sessions_of) - self._queued

    @property
    def is_empty(self) -> bool:
        """Nothing waits, nothing is active, and no session, lane or gate entry is left behind."""
        return not (self._sessions or self._sessions_of or self._lanes or self._gate_holder or self._gate_queue)

    def lanes(self) -> list[tuple[str, int, int, int]]:
        """(name, width, active, queued) of the configured lanes and of those in use, by name."""
        rows = {name: (name, width, 0, 0) for name, width in self._widths.items()}
        rows.update({name: (name, lane.width, lane.active, lane.queued) for name, lane in self._lanes.items()})
        return [rows[name] for name in sorted(rows)]

    def enqueue(self, ticket: Ticket, *, is_first: bool = False) -> None:
        """Take a ticket in. `is_first`: before the waiting ones of its session (an interrupted run)."""
        session_id = (ticket.tenant, ticket.session_key)
        if ticket.run_id in self._sessions_of:
            raise ValueError(f"run {ticket.run_id} is already in the book")
        session = self._sessions.setdefault(session_id, _Session())
        self._sessions_of[ticket.run_id] = session_id
        self._queued += 1
        self._lane(ticket.lane).queued += 1
        if is_first:
            session.waiting.appendleft(ticket)
        else:
            session.waiting.append(ticket)
        if session.active is None and session.waiting[0] is ticket:
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

    def release(self, run_id: str) -> None:
        """The active run's task is gone: its session and its place in the lane are free."""
        session_id = self._sessions_of.pop(run_id)
        session = self._sessions[session_id]
        ticket = session.active
        if ticket is None or ticket.run_id != run_id:
            raise ValueError(f"run {run_id} is not active")
        self._free_slot(session, ticket)
        session.active = None
        self.leave_gate(run_id)
        if session.waiting:
            self._offer(session_id, session)
        else:
            del self._sessions[session_id]

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
        ticket = next((each for each in session.waiting if each.run_id == run_id), None)
        if ticket is None:
            return False
        was_head = session.waiting[0] is ticket
        session.waiting.remove(ticket)
        del self._sessions_of[run_id]
        self._queued -= 1
        self._lanes[ticket.lane].queued -= 1
        if session.active is None and was_head:
            session.entry_no = 0
            if session.waiting:
                self._offer(session_id, session)
        if session.active is None and not session.waiting:
            del self._sessions[session_id]
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
        """Put a free session with a waiting run among the candidates of that run's lane."""
        ticket = session.waiting[0]
        self._entries += 1
        session.entry_no = self._entries
        heap = self._lane(ticket.lane).ready.setdefault(session_id[0], [])
        heapq.heappush(heap, (-int(ticket.priority), session.last_started, session.entry_no, session_id[1]))

    def _next_ready(self, lane: _Lane) -> SessionId | None:
        """The session the lane serves next, taken from its candidates; its tenant goes to the end of the turn."""
        for tenant in list(lane.ready):
            heap = lane.ready[tenant]
            while heap:
                _, _, entry_no, session_key = heapq.heappop(heap)
                session = self._sessions.get((tenant, session_key))
                if session is None or session.active is not None or session.entry_no != entry_no:
                    continue
                if session.waiting[0].is_gated and self._gate_holder is not None:
                    self._gate_queue.append((tenant, session_key))
                    continue
                lane.ready.move_to_end(tenant)
                return (tenant, session_key)
            del lane.ready[tenant]
        return None

    def _start(self, session_id: SessionId, lane: _Lane) -> Ticket:
        session = self._sessions[session_id]
        ticket = session.waiting.popleft()
        session.active = ticket
        session.holds_slot = True
        self._started += 1
        session.last_started = self._started
        lane.active += 1
        lane.queued -= 1
        self._queued -= 1
        if ticket.is_gated:
            self._gate_holder = ticket.run_id
        return ticket
