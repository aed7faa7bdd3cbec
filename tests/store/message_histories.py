"""What can happen to the messages of some sessions, against a small model of D-7: modes, steering, aborts, crashes.

The model says for each message where it is: it waits for a turn, waits to go into a run, is at work, is part of another
run, or has ended. The store's rows, the lanes and the transcript must say the same after every step.
"""

from collections import Counter
from datetime import timedelta
from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.store.lane_world import (
    NOW,
    TENANT,
    Lanes,
    MemoryStore,
    Opening,
    abort_of,
    ending,
    injection,
    opening,
    settling,
    start_recovered,
)
from tests.store.message_model import Message, MessageModel

from lanewayd.errors import CollectionChanged, ErrorCode, IntakeNotEmpty, LanewayError, RunNotStartable
from lanewayd.queueing.steering import can_join
from lanewayd.records import Disposition, DropPolicy, Priority, QueueMode, QueueRules, RunRequest, RunState
from lanewayd.runs.recovery import RecoveryStep, recovery_step
from lanewayd.store import reads
from lanewayd.store.interface import Accepted, AcceptRun, IdempotencyKey, SessionSelector
from lanewayd.transcript.context import standing_of

SESSIONS = ("s1", "s2")
MEANWHILE = st.sampled_from(["accept", "abort", "crash"])
TOOLS = ((), (), (), (), (), ("exec",))
ENDS = (RunState.SUCCEEDED, RunState.SUCCEEDED, RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELLED)
MODES = (*[QueueMode.STEER] * 4, *[QueueMode.COLLECT] * 3, QueueMode.FOLLOWUP, QueueMode.INTERRUPT)
KINDS = st.tuples(st.sampled_from(MODES), st.sampled_from(TOOLS))
KEY_KEPT_FOR = timedelta(hours=24)
MAX_ATTEMPTS = 3
"""Charges after which a run is given up."""


class MessageHistories(RuleBasedStateMachine):
    """Hypothesis finds the histories."""

    happened: ClassVar[Counter[str]] = Counter()
    """Over all histories of this process."""

    @initialize(cap=st.sampled_from([1, 2, 3]), drop=st.sampled_from(list(DropPolicy)))
    def begin(self, cap: int, drop: DropPolicy) -> None:
        self.store = MemoryStore()
        self.lanes = Lanes()
        self.model = MessageModel(cap=cap, drop=drop, happened=self.happened)
        self.messages = self.model.messages
        self.commands: dict[str, AcceptRun] = {}
        self.withdrawn: dict[str, str] = {}
        """Ended while they waited to go into a run: which one."""

    # --- what can happen ---

    @rule(session_key=st.sampled_from(SESSIONS), kind=KINDS)
    def accept_one(self, session_key: str, kind: tuple[QueueMode, tuple[str, ...]]) -> None:
        self.accept(session_key, *kind)

    @rule(session_key=st.sampled_from(SESSIONS), burst=st.lists(KINDS, min_size=1, max_size=3))
    def accept_while_at_work(self, session_key: str, burst: list[tuple[QueueMode, tuple[str, ...]]]) -> None:
        """As most messages come: to a session that is at work and has nothing else to do."""
        for _ in range(3):
            if len(self.model.of(session_key)) > 1:
                self.finish_all(session_key)
        if not self.model.of(session_key):
            self.accept(session_key, QueueMode.FOLLOWUP, ())
        self.turns(session_key)
        for kind in burst:
            self.accept(session_key, *kind)

    def finish_all(self, session_key: str) -> None:
        """What can start does, and ends well."""
        self.turns(session_key)
        for run_id in [each for each in self.lanes.at_work if self.messages[each].session_key == session_key]:
            self.work_off(run_id)

    def turns(self, session_key: str) -> None:
        """Quiet times end, and what has its turn starts."""
        self.lanes.book.let_go(list(self.lanes.held))
        self.lanes.held.clear()
        self.admit()
        for run_id in [each for each in self.lanes.admitted if self.messages[each].session_key == session_key]:
            self.starts(self.messages[run_id])

    def accept(self, session_key: str, mode: QueueMode, tools: tuple[str, ...]) -> None:
        message = Message(len(self.commands) + 1, session_key, mode, tools, Disposition.STARTED)
        command = self.commands[message.run_id] = self.command_of(message)
        ahead = sum(each.waits_for_turn for each in self.model.of(session_key))
        try:
            message, dropped, interrupted = self.model.expected(message)
        except LanewayError:
            with pytest.raises(LanewayError) as refusal:
                self.store.do(command)
            assert refusal.value.code is ErrorCode.QUEUE_FULL
            return
        result: Accepted = self.store.do(command)
        assert result.disposition == message.disposition.value
        assert [run.run_id for run in result.dropped] == [each.run_id for each in dropped]
        assert result.interrupted_run_id == (interrupted.run_id if interrupted is not None else "")
        assert result.queue_position == (0 if message.host else ahead - len(dropped))
        for each in dropped:
            each.state = RunState.CANCELLED
        self.messages[message.run_id] = message
        self.happened[f"messages {result.disposition}"] += 1
        self.lanes.heard_accepted(result)
        if interrupted is not None:
            interrupted.is_marked = True
            self.stop(interrupted)

    def command_of(self, message: Message) -> AcceptRun:
        request = RunRequest(
            message=message.words,
            agent_id="a",
            lane="",
            priority=Priority.NORMAL,
            model="p/m",
            timeout_s=0.0,
            tools_allow=message.tools,
            queue_mode=message.mode.value,
        )
        key = IdempotencyKey(message.run_id, b"hash", 1, KEY_KEPT_FOR)
        session = SessionSelector(message.session_key, "", "a", "", f"id of {message.session_key}")
        rules = QueueRules(QueueMode.FOLLOWUP, self.model.cap, self.model.drop, can_join=can_join)
        return AcceptRun(TENANT, message.run_id, session, request, key, NOW, 5, rules)

    @precondition(lambda self: self.messages)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """A caller that has not heard the answer sends the same again."""
        message = self.messages[data.draw(st.sampled_from(sorted(self.messages)))]
        again: Accepted = self.store.do(self.commands[message.run_id])
        assert again.duplicate
        assert again.run is None
        assert (again.run_id, again.disposition) == (message.run_id, message.disposition.value)

    @precondition(lambda self: self.lanes.held)
    @rule(data=st.data())
    def quiet_time_ends(self, data: st.DataObject) -> None:
        run_ids = data.draw(st.sets(st.sampled_from(sorted(self.lanes.held)), min_size=1))
        self.lanes.book.let_go(run_ids)
        self.lanes.held -= run_ids

    @rule()
    def admit(self) -> None:
        for ticket in self.lanes.admit():
            message = self.messages[ticket.run_id]
            if message.state is RunState.RUNNING:
                continue  # recovered: it goes first
            older = [each for each in self.model.of(message.session_key) if each.number < message.number]
            assert not older, f"{message.run_id} overtakes {older}"

    @precondition(lambda self: self.lanes.admitted)
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.starts(self.messages[data.draw(st.sampled_from(sorted(self.lanes.admitted)))])

    @rule(session_key=st.sampled_from(SESSIONS), count=st.integers(1, 4), data=st.data(), meanwhile=MEANWHILE)
    def what_is_collected_changes(self, session_key: str, count: int, data: st.DataObject, meanwhile: str) -> None:
        """Something happens after a run has looked at what waits, and before it is stored as started."""
        self.accept_while_at_work(session_key, [(QueueMode.COLLECT, ())] * count)
        for run_id in [each for each in self.lanes.at_work if self.messages[each].session_key == session_key]:
            self.work_off(run_id)
        self.lanes.book.let_go(list(self.lanes.held))
        self.lanes.held.clear()
        self.admit()
        ready = [self.messages[run_id] for run_id, is_recovered in self.lanes.admitted.items() if not is_recovered]
        message = next((each for each in ready if each.session_key == session_key), None)
        if message is None:
            return
        seen = opening(self.store, message.run_id)
        if meanwhile == "accept":
            self.accept(message.session_key, *data.draw(KINDS))
        elif meanwhile == "abort":
            asked = self.messages[data.draw(st.sampled_from([*seen.members, message.run_id]))]
            self.heard_abort(abort_of(run_id=asked.run_id), [asked])
        else:
            self.crash()
            return
        try:
            self.starts(message, seen)
        except CollectionChanged:
            self.happened["collections looked at twice"] += 1
            self.starts(message)

    def starts(self, message: Message, seen: Opening | None = None) -> None:
        """Its supervision begins; `seen`: what it saw before. Raises CollectionChanged when it does not hold."""
        if self.lanes.admitted[message.run_id]:
            self.start_again(message)
            return
        seen = seen or opening(self.store, message.run_id)
        try:
            started = self.store.do(seen.command)
        except RunNotStartable:
            assert message.state.is_ended
            self.lanes.leave(message.run_id)
            return
        assert message.state is RunState.QUEUED
        self.is_started(message, seen.members)
        for run in started.merged:
            self.lanes.waits_no_more(run)
        self.lanes.admitted.pop(message.run_id)
        self.lanes.at_work[message.run_id] = started.run

    def is_started(self, message: Message, members: tuple[str, ...]) -> None:
        assert self.model.at_work(message.session_key) is None
        message.state, message.is_said = RunState.RUNNING, True
        behind = [each for each in self.model.of(message.session_key) if each.number > message.number]
        for run_id in members:
            member = behind.pop(0)
            assert member.run_id == run_id, "a message is collected across another one"
            assert message.mode is member.mode is QueueMode.COLLECT
            assert message.tools == member.tools
            member.state, member.host, member.is_said = RunState.MERGED, message.run_id, True

    def start_again(self, message: Message) -> None:
        """A run that another process left at work."""
        try:
            started = self.store.do(start_recovered(message.run_id))
        except RunNotStartable:
            assert message.is_marked
            self.lanes.leave(message.run_id)
            self.settle(message, RunState.CANCELLED)
            return
        self.lanes.admitted.pop(message.run_id)
        self.lanes.at_work[message.run_id] = started.run

    @precondition(lambda self: any(self.lanes.attached.values()))
    @rule(data=st.data())
    def inject(self, data: st.DataObject) -> None:
        """A checkpoint: the run takes in what waits, and is told of one that was withdrawn a moment ago."""
        hosts = sorted(host for host, waiting in self.lanes.attached.items() if waiting and host in self.lanes.at_work)
        if not hosts:
            return
        host = self.messages[data.draw(st.sampled_from(hosts))]
        waiting = list(self.lanes.attached[host.run_id].values())
        stale = [self.store.run(run_id) for run_id, former in self.withdrawn.items() if former == host.run_id]
        command = injection(
            self.lanes.at_work[host.run_id], sorted([*waiting, *stale], key=lambda run: run.accepted_no)
        )
        injected = self.store.do(command)
        assert list(injected.taken) == [run.run_id for run in waiting]
        for run in injected.merged:
            message = self.messages[run.run_id]
            message.state, message.is_said = RunState.MERGED, True
            self.lanes.waits_no_more(run)
        again = self.store.do(command)
        assert (again.merged, again.taken) == ((), injected.taken)

    @precondition(lambda self: self.lanes.at_work)
    @rule(data=st.data(), state=st.sampled_from(ENDS))
    def finish(self, data: st.DataObject, state: RunState) -> None:
        """Its answer, a fault, its deadline or an abort ends a run."""
        message = self.messages[data.draw(st.sampled_from(sorted(self.lanes.at_work)))]
        command = ending(self.store, self.lanes.at_work[message.run_id], state)
        waits = any(each.host == message.run_id and each.state is RunState.QUEUED for each in self.messages.values())
        if state is RunState.SUCCEEDED and waits:
            with pytest.raises(IntakeNotEmpty):
                self.store.do(command)
            return
        self.lanes.heard_end(self.store.do(command))
        self.model.ends(message, state)
        self.lanes.leave(message.run_id)

    @precondition(lambda self: self.messages)
    @rule(data=st.data())
    def abort_run(self, data: st.DataObject) -> None:
        message = self.messages[data.draw(st.sampled_from(sorted(self.messages)))]
        self.heard_abort(abort_of(run_id=message.run_id), [message])

    @rule(session_key=st.sampled_from(SESSIONS), clear_queued=st.booleans())
    def abort_session(self, session_key: str, clear_queued: bool) -> None:
        asked = [each for each in self.model.of(session_key) if clear_queued or each.state is not RunState.QUEUED]
        self.heard_abort(abort_of(session_key=session_key, clear_queued=clear_queued), asked)

    def heard_abort(self, command: object, asked: list[Message]) -> None:
        queued = [each for each in asked if each.state is RunState.QUEUED]
        running = [each for each in asked if each.state is RunState.RUNNING]
        result = self.store.do(command)
        assert [run.run_id for run in result.cancelled] == [each.run_id for each in queued]
        assert list(result.running) == [each.run_id for each in running]
        for run in result.cancelled:
            self.lanes.waits_no_more(run)
        for each in queued:
            each.state = RunState.CANCELLED
            if each.host:
                self.withdrawn[each.run_id], each.host = each.host, ""
        for each in running:
            each.is_marked = True
            self.stop(each)

    def stop(self, message: Message) -> None:
        """A recovered run that still waits for its turn ends at once; one at work when it hears of it."""
        if message.run_id in self.lanes.recovered and self.lanes.book.cancel(message.run_id):
            self.lanes.recovered.pop(message.run_id)
            self.settle(message, RunState.CANCELLED)

    def settle(self, message: Message, state: RunState) -> None:
        self.lanes.heard_end(self.store.do(settling(message.run_id, state)))
        self.model.ends(message, state)

    @rule()
    def crash(self) -> None:
        """The process is gone; the next one puts everything in its place, as runs/recovery.py does."""
        self.happened["crashes"] += 1
        self.happened["crashes with messages on their way into a run"] += any(self.lanes.attached.values())
        self.lanes = Lanes()
        attached, resumed = [], set()
        for run in reads.unended_runs(self.store.snapshot):
            if run.state is RunState.QUEUED and run.host_run_id:
                attached.append(run)
            elif run.state is RunState.QUEUED:
                self.lanes.enqueue(run)
            elif run.state is RunState.RUNNING:
                standing = standing_of(reads.context(self.store.snapshot, run.session_id), run.run_id)
                step = recovery_step(run, standing, MAX_ATTEMPTS)
                if step is RecoveryStep.RESUME:
                    self.lanes.resume(run)
                    resumed.add(run.run_id)
                else:
                    is_abort = step is RecoveryStep.CANCEL
                    self.settle(self.messages[run.run_id], RunState.CANCELLED if is_abort else RunState.FAILED)
        for run in attached:
            if run.host_run_id in resumed:
                self.lanes.attach(run)

    # --- what holds at all times ---

    @invariant()
    def rows_say_what_the_model_says(self) -> None:
        rows = {run.run_id: (run.state, run.host_run_id) for run in reads.unended_runs(self.store.snapshot)}
        assert rows == {
            each.run_id: (each.state, each.host) for each in self.messages.values() if not each.state.is_ended
        }

    @invariant()
    def each_message_has_one_owner(self) -> None:
        """It waits in the lanes, or to go into one run, or is at work, or part of a run, or has ended."""
        waiting = [each.run_id for each in self.messages.values() if each.waits_for_turn]
        places = Counter(run_id for runs in self.lanes.attached.values() for run_id in runs)
        assert places == Counter(
            each.run_id for each in self.messages.values() if each.state is RunState.QUEUED and each.host
        )
        new = [run_id for run_id, is_recovered in self.lanes.admitted.items() if not is_recovered]
        new = [run_id for run_id in new if not self.messages[run_id].state.is_ended]
        assert self.lanes.book.queued == len(waiting) - len(new) + len(self.lanes.recovered)
        for session_key in SESSIONS:
            self.model.at_work(session_key)
            assert len(
                self.model.waiting_to_be_collected(session_key)
            ) <= self.model.cap + self.model.first_of_a_free_session(session_key)

    def teardown(self) -> None:
        """Whatever has happened, each message gets its turn or its end, and its words are said once or never."""
        for _ in range(2 * len(self.messages) + 1):
            for session_key in SESSIONS:
                self.finish_all(session_key)
        assert [each for each in self.messages.values() if not each.state.is_ended] == []
        assert self.lanes.book.is_empty
        assert not any(self.lanes.attached.values())
        self.check_ends()
        self.store.close()

    def work_off(self, run_id: str) -> None:
        """The run takes in what waits for it, and ends well."""
        run = self.lanes.at_work[run_id]
        for merged in self.store.do(injection(run, list(self.lanes.attached.get(run_id, {}).values()))).merged:
            self.messages[merged.run_id].state, self.messages[merged.run_id].is_said = RunState.MERGED, True
            self.lanes.waits_no_more(merged)
        self.lanes.heard_end(self.store.do(ending(self.store, run, RunState.SUCCEEDED)))
        self.model.ends(self.messages[run_id], RunState.SUCCEEDED)
        self.lanes.leave(run_id)

    def check_ends(self) -> None:
        said = Counter(
            line
            for session_key in SESSIONS
            for text in self.store.texts(f"id of {session_key}")
            for line in text.splitlines()
        )
        for message in self.messages.values():
            run = self.store.run(message.run_id)
            assert (run.state, run.host_run_id) == (message.state, message.host)
            assert said[message.words] == message.is_said, f"{message.words} {said[message.words]} times"
            if message.host:
                assert message.state in (self.messages[message.host].state, RunState.CANCELLED)
