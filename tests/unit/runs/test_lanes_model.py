"""LaneBook against the rules of D-8, written down as a small model that tries every rule at every step."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lanewayd.records import Priority
from lanewayd.runs.lanes import LaneBook, SessionId, Ticket

WIDTHS = {"main": 2, "cron": 1, "shut": 0}
LANES = ("main", "main", "main", "cron", "other", "nested.1", "shut")
TENANTS = ("a", "b", "c")
TENANT_WIDTHS = (None, None, 1, 2)
SESSIONS = ("s1", "s2", "s3")


def width_of(lane: str) -> int:
    return WIDTHS.get(lane, 8 if lane.startswith("nested.") else 1)


class LaneRules(RuleBasedStateMachine):
    """The model: what waits, what runs, who holds room, and when each session last started."""

    @initialize(tenant_width=st.sampled_from(TENANT_WIDTHS))
    def begin(self, tenant_width: int | None) -> None:
        self.book = LaneBook(WIDTHS, tenant_width=tenant_width)
        self.tenant_width = tenant_width
        self.waiting: dict[SessionId, list[Ticket]] = {}
        self.active: dict[SessionId, Ticket] = {}
        self.with_room: set[str] = set()
        self.gate: str | None = None
        self.held: set[str] = set()
        self.ended_runs: set[str] = set()
        self.last_start: dict[SessionId, int] = {}
        self.served_while_ready: dict[tuple[str, str], set[str]] = {}
        """(lane, tenant that could start all the time) -> tenants that were served meanwhile."""
        self.given = 0
        self.taken_back: list[str] = []

    # --- the model's rules ---

    def startable(self) -> dict[str, dict[str, list[Ticket]]]:
        """lane -> tenant -> first tickets that may start now."""
        found: dict[str, dict[str, list[Ticket]]] = {}
        for session_id, tickets in self.waiting.items():
            ticket = tickets[0]
            is_held = ticket.is_gated and self.gate is not None
            is_held = is_held or ticket.run_id in self.held
            has_room = self.room_used(ticket.lane) < width_of(ticket.lane)
            if session_id not in self.active and has_room and not is_held and self.may_execute(ticket.tenant):
                found.setdefault(ticket.lane, {}).setdefault(ticket.tenant, []).append(ticket)
        return found

    def may_execute(self, tenant: str) -> bool:
        return self.tenant_width is None or self.active_of(tenant) < self.tenant_width

    def active_of(self, tenant: str) -> int:
        return sum(
            session_id[0] == tenant and ticket.run_id not in self.ended_runs
            for session_id, ticket in self.active.items()
        )

    def room_used(self, lane: str) -> int:
        return sum(ticket.lane == lane and ticket.run_id in self.with_room for ticket in self.active.values())

    def check_and_start(self, ticket: Ticket) -> None:
        session_id = (ticket.tenant, ticket.session_key)
        startable = self.startable()
        rivals = startable.get(ticket.lane, {}).get(ticket.tenant, [])
        assert ticket in rivals, f"{ticket} may not start"
        ranks = {
            (-rival.priority, self.last_start.get((rival.tenant, rival.session_key), 0)): rival for rival in rivals
        }
        assert (-ticket.priority, self.last_start.get(session_id, 0)) == min(ranks)
        self.check_turns(ticket, set(startable[ticket.lane]))
        self.waiting[session_id].remove(ticket)
        if not self.waiting[session_id]:
            del self.waiting[session_id]
        self.active[session_id] = ticket
        self.with_room.add(ticket.run_id)
        self.last_start[session_id] = max(self.last_start.values(), default=0) + 1
        if ticket.is_gated:
            self.gate = ticket.run_id
        self.forget_who_could_not()

    def forget_who_could_not(self) -> None:
        """A tenant that could not start for a moment, as another lane or the gate had it, waits anew."""
        startable = self.startable()
        for lane, tenant in list(self.served_while_ready):
            if tenant not in startable.get(lane, {}):
                del self.served_while_ready[lane, tenant]

    def check_turns(self, ticket: Ticket, ready: set[str]) -> None:
        """No tenant is served twice while another one of the lane could have been."""
        for tenant in TENANTS:
            turn = (ticket.lane, tenant)
            if tenant == ticket.tenant or tenant not in ready:
                self.served_while_ready.pop(turn, None)
                continue
            served = self.served_while_ready.setdefault(turn, set())
            assert ticket.tenant not in served, f"{tenant} was passed over twice by {ticket.tenant}"
            served.add(ticket.tenant)

    def active_ticket(self, data: st.DataObject) -> tuple[SessionId, Ticket]:
        session_id = data.draw(st.sampled_from(sorted(self.active)))
        return session_id, self.active[session_id]

    # --- what can happen ---

    @rule(
        tenant=st.sampled_from(TENANTS),
        session_key=st.sampled_from(SESSIONS),
        lane=st.sampled_from(LANES),
        priority=st.sampled_from(list(Priority)),
        is_gated=st.sampled_from([False, False, False, True]),
        is_first=st.sampled_from([False, False, True]),
        is_held=st.sampled_from([False, False, True]),
        came_before=st.sampled_from([0, 0, 0, 1, 2, 5]),
    )
    def enqueue(  # noqa: PLR0917 - what a ticket has
        self,
        tenant: str,
        session_key: str,
        lane: str,
        priority: Priority,
        is_gated: bool,
        is_first: bool,
        is_held: bool,
        came_before: int,
    ) -> None:
        """`came_before`: it waited elsewhere, and so many of those that wait now came after it."""
        self.given += 1
        place = self.given - came_before - 0.5 if came_before else self.given
        if is_first:
            place = -self.given  # interrupted: it came before all that wait
        ticket = Ticket(f"run {self.given}", tenant, session_key, lane, priority, is_gated, is_held, int(place * 2))
        if is_held:
            self.held.add(ticket.run_id)
        self.book.enqueue(ticket, is_first=is_first)
        tickets = self.waiting.setdefault((tenant, session_key), [])
        if is_first:
            tickets.insert(0, ticket)
        elif came_before:
            earlier = [each for each in tickets if each.accepted_no <= ticket.accepted_no]
            tickets[:] = [*earlier, ticket, *(each for each in tickets if each not in earlier)]
        else:
            tickets.append(ticket)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def let_go(self, data: st.DataObject) -> None:
        run_ids = data.draw(st.sets(st.sampled_from(sorted(self.held)), min_size=1))
        self.book.let_go(run_ids)
        self.held -= run_ids

    @rule()
    def admit(self) -> None:
        for ticket in self.book.admit():
            self.check_and_start(ticket)
        assert self.startable() == {}, "a ticket that may start was left waiting"

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        session_id, ticket = self.active_ticket(data)
        self.book.release(ticket.run_id)
        del self.active[session_id]
        self.with_room.discard(ticket.run_id)
        self.taken_back.append(ticket.run_id)
        if self.gate == ticket.run_id:
            self.gate = None

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def ended(self, data: st.DataObject) -> None:
        _, ticket = self.active_ticket(data)
        self.book.ended(ticket.run_id)
        self.ended_runs.add(ticket.run_id)

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def free_slot(self, data: st.DataObject) -> None:
        _, ticket = self.active_ticket(data)
        self.book.free_slot(ticket.run_id)
        self.with_room.discard(ticket.run_id)

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def leave_gate(self, data: st.DataObject) -> None:
        _, ticket = self.active_ticket(data)
        self.book.leave_gate(ticket.run_id)
        if self.gate == ticket.run_id:
            self.gate = None

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        session_id = data.draw(st.sampled_from(sorted(self.waiting)))
        ticket = data.draw(st.sampled_from(self.waiting[session_id]))
        assert self.book.cancel(ticket.run_id)
        assert not self.book.cancel(ticket.run_id)
        self.waiting[session_id].remove(ticket)
        self.taken_back.append(ticket.run_id)
        if not self.waiting[session_id]:
            del self.waiting[session_id]

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def cancel_of_an_active_run_changes_nothing(self, data: st.DataObject) -> None:
        _, ticket = self.active_ticket(data)
        assert not self.book.cancel(ticket.run_id)

    # --- what holds at all times ---

    @invariant()
    def counts_agree(self) -> None:
        self.forget_who_could_not()
        waiting = sum(len(tickets) for tickets in self.waiting.values())
        assert (self.book.queued, self.book.active) == (waiting, len(self.active))
        for tenant in TENANTS:
            waits = sum(len(tickets) for session_id, tickets in self.waiting.items() if session_id[0] == tenant)
            assert (self.book.queued_of(tenant), self.book.active_of(tenant)) == (waits, self.active_of(tenant))
            assert self.tenant_width is None or self.active_of(tenant) <= self.tenant_width
        for name, width, active, queued in self.book.lanes():
            waits = sum(ticket.lane == name for tickets in self.waiting.values() for ticket in tickets)
            assert (width, active, queued) == (width_of(name), self.room_used(name), waits)
        assert self.book.is_empty == (not waiting and not self.active)

    def teardown(self) -> None:
        """Whatever was done, everything comes out once and nothing is left behind."""
        for tickets in list(self.waiting.values()):
            for ticket in [each for each in tickets if each.lane == "shut"]:
                assert self.book.cancel(ticket.run_id)
                tickets.remove(ticket)
                self.taken_back.append(ticket.run_id)
        self.waiting = {session_id: tickets for session_id, tickets in self.waiting.items() if tickets}
        self.book.let_go(["unknown", *self.held])
        self.held = set()
        while self.waiting or self.active:
            self.admit()
            for session_id, ticket in list(self.active.items()):
                self.book.release(ticket.run_id)
                del self.active[session_id]
                self.with_room.discard(ticket.run_id)
                self.taken_back.append(ticket.run_id)
                if self.gate == ticket.run_id:
                    self.gate = None
            self.forget_who_could_not()
        assert self.book.is_empty
        assert len(self.taken_back) == len(set(self.taken_back)) == self.given


TestLaneRules = LaneRules.TestCase
TestLaneRules.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)
