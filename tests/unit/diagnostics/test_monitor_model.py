"""The look-out against a small model: who is told of, who is stopped, what is given back; over generated histories.

The sessions are fakes that do what the scheduler does: a run is at work, silent, stopped, gone or left behind.
"""

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.fakes.fake_clock import FakeClock

from lanewayd.diagnostics.liveness import Diagnosis, OpenTool, Recovered, SessionLook, Thresholds, Work
from lanewayd.diagnostics.monitor import HEARTBEAT_S, LivenessMonitor, Recovery

SESSIONS = ("s1", "s2", "s3")
T = Thresholds()


@dataclass
class Fake:
    """A session: when its run last showed life and progress, and how it takes being stopped."""

    look: SessionLook
    alive_s: float
    progressed_s: float
    tool_s: float = 0.0
    lets_go: bool = True
    is_stopped: bool = False


class FakeSessions:
    """Implements diagnostics.monitor.Sessions."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.sessions: dict[str, Fake] = {}
        self.stopped: list[SessionLook] = []
        self.given_up: list[SessionLook] = []
        self.pumped = 0
        self.told: list[tuple[SessionLook, Diagnosis, Recovery | None]] = []

    def _now(self, fake: Fake) -> SessionLook:
        now_s = self.clock.monotonic()
        tool = replace(fake.look.tool, age_s=now_s - fake.tool_s) if fake.look.tool is not None else None
        return replace(fake.look, age_s=now_s - fake.alive_s, progress_age_s=now_s - fake.progressed_s, tool=tool)

    def looks(self) -> Iterator[SessionLook]:
        yield from [self._now(fake) for fake in self.sessions.values()]

    def look(self, tenant: str, session_key: str) -> SessionLook | None:
        fake = self.sessions.get(session_key)
        return self._now(fake) if fake is not None else None

    def found_stalled(self, look: SessionLook) -> None:
        assert look.session_key in self.sessions

    def tell(self, look: SessionLook, diagnosis: Diagnosis, recovery: Recovery | None) -> None:
        self.told.append((look, diagnosis, recovery))

    async def stop(self, look: SessionLook, settle_s: float) -> None:
        fake = self.sessions[look.session_key]
        self.stopped.append(look)
        fake.is_stopped = True
        if fake.lets_go:
            del self.sessions[look.session_key]
        await asyncio.sleep(0)

    def give_up(self, look: SessionLook) -> None:
        self.given_up.append(look)
        del self.sessions[look.session_key]

    def pump(self) -> None:
        self.pumped += 1

    def session_diagnosed(self, event: str, reason: str) -> None:
        assert event.startswith("session.")


class MonitorRules(RuleBasedStateMachine):
    """Hypothesis finds the histories."""

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock()
        self.sessions = FakeSessions(self.clock)
        self.monitor = LivenessMonitor(self.sessions, T, self.clock, instruments=self.sessions)
        self.generation = 0

    @rule(
        key=st.sampled_from(SESSIONS),
        work=st.sampled_from([Work.MODEL_CALL, Work.TOOL_CALL, Work.OTHER, None]),
        queue_depth=st.integers(0, 2),
        has_owner=st.sampled_from([True, True, True, False]),
        lets_go=st.booleans(),
        limit_s=st.sampled_from([0.0, 0.0, 1800.0]),
    )
    def at_work(
        self, key: str, work: Work | None, queue_depth: int, has_owner: bool, lets_go: bool, limit_s: float
    ) -> None:
        if key in self.sessions.sessions:
            return
        self.generation += 1
        now_s = self.clock.monotonic()
        tool = OpenTool("t", "c", 0.0, limit_s) if work is Work.TOOL_CALL else None
        seen = SessionLook(
            "t", key, f"r{self.generation}", self.generation, has_owner and work is not None, work, 0.0, 0.0,
            queue_depth=max(queue_depth, work is None), tool=tool,
        )  # fmt: skip
        self.sessions.sessions[key] = Fake(seen, now_s, now_s, tool_s=now_s, lets_go=lets_go)

    @rule(key=st.sampled_from(SESSIONS), is_progress=st.booleans())
    def sign_of_life(self, key: str, is_progress: bool) -> None:
        fake = self.sessions.sessions.get(key)
        if fake is not None:
            fake.alive_s = self.clock.monotonic()
            fake.progressed_s = fake.alive_s if is_progress else fake.progressed_s

    @rule(key=st.sampled_from(SESSIONS))
    def ends(self, key: str) -> None:
        self.sessions.sessions.pop(key, None)

    @rule(beats=st.integers(1, 40))
    def time_passes(self, beats: int) -> None:
        self.loop.run_until_complete(self._pass(beats))

    async def _pass(self, beats: int) -> None:
        for _ in range(beats):
            await self.clock.advance(HEARTBEAT_S)
            before = list(self.sessions.looks())
            stopped, given_up = len(self.sessions.stopped), len(self.sessions.given_up)
            async with asyncio.TaskGroup() as group:
                self.monitor.beat(group)
            for look in self.sessions.stopped[stopped:]:
                self.check_stop(look)
            for look in self.sessions.given_up[given_up:]:
                assert look in before
                assert look in self.sessions.stopped or not look.has_owner
            self.check_nothing_overdue()

    def check_stop(self, look: SessionLook) -> None:
        """Slow is not stuck (R-2.124)."""
        assert look.has_owner
        least_s = T.abort_s if look.tool is None else max(T.tool_abort_s, look.tool.limit_s)
        assert look.progress_age_s >= least_s
        assert look.age_s > T.warn_s

    def check_nothing_overdue(self) -> None:
        """A lane is always released: nothing that shows no life stays for longer than its threshold and a look."""
        for look in self.sessions.looks():
            if look.work is None or look.age_s <= T.warn_s:
                continue
            if not look.has_owner:
                assert look.age_s < T.ownerless_s
            else:
                limit_s = look.tool.limit_s + T.settle_s if look.tool is not None and look.tool.limit_s else 0.0
                floor_s = T.abort_s if look.tool is None else T.tool_abort_s
                assert look.progress_age_s < max(floor_s, limit_s)

    @precondition(lambda self: self.sessions.told)
    @rule()
    def what_is_told_is_told_ever_less_often(self) -> None:
        ages: dict[int, list[tuple[float, float]]] = {}
        for look, _, recovery in self.sessions.told:
            if recovery is None:
                ages.setdefault(look.generation, []).append((look.age_s, look.progress_age_s))
        for told in ages.values():
            for (age_s, _), (next_s, _) in itertools.pairwise(told):
                assert next_s >= 2 * age_s or next_s < age_s + T.warn_s  # the latter: it had shown life

    @invariant()
    def each_recovery_that_begins_is_told_to_end(self) -> None:
        recoveries = [recovery for _, _, recovery in self.sessions.told if recovery is not None]
        asked = [recovery for recovery in recoveries if recovery.outcome is None]
        done = [recovery for recovery in recoveries if recovery.outcome is not None]
        assert len(asked) == len(done)
        assert all(recovery.outcome is not Recovered.FAILED for recovery in done)
        assert self.monitor.told <= len(SESSIONS)

    def teardown(self) -> None:
        self.loop.run_until_complete(self._pass(80))
        left = [look for look in self.sessions.looks() if look.work is not None]
        assert left == []
        self.loop.close()


TestMonitorRules = MonitorRules.TestCase
TestMonitorRules.settings = settings(max_examples=40, stateful_step_count=20, deadline=None, derandomize=True)
