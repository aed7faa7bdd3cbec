"""Reading logs by cursor (D-3): of a run, of a session, of everything a tenant may see.

Nobody has a queue. A follower reads the store from its own position until it stands at the end, then a small tail that
all followers of the same log share; when the tail has moved past it, it reads the store again. A commit wakes whoever
waits. A reader that is slow costs its own position and nothing else. A run that has not ended has a tail from its first
event on, so that who follows it from there in time does not ask the store at all.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from lanewayd.clock import Clock
from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.events import StoredEvent
from lanewayd.records import Run
from lanewayd.runs.interface import Progress, Snapshot
from lanewayd.sessions.keys import canonical_key
from lanewayd.store.interface import EventPage, Store
from lanewayd.telemetry.metrics import Metrics

PAGE_EVENTS = 200
TAIL_EVENTS = 256
TAIL_BYTES = 512 * 1024
UNREAD_TAIL_EVENTS = 32
UNREAD_TAIL_BYTES = 64 * 1024
"""Of a run that nobody follows yet."""
PROGRESS_AFTER_S = 15.0

TopicKey = tuple[str, str, str]
"""(what, tenant, name)"""


@dataclass(eq=False, slots=True)
class _Topic:
    """The newest events of one log that somebody follows, or of a run that has not ended, and who waits for more."""

    tail: deque[StoredEvent] = field(default_factory=deque)
    tail_bytes: int = 0
    dropped: int = 0
    """Position of the newest event that has left the tail; what was published after it is in."""
    signals: set[asyncio.Event] = field(default_factory=set)
    is_unended: bool = False
    """It is kept also while nobody follows it."""
    is_whole: bool = False
    """The tail is the whole log of a run that has not ended."""

    def add(self, event: StoredEvent) -> None:
        self.tail.append(event)
        self.tail_bytes += len(event.encoded)
        events, size_bytes = (TAIL_EVENTS, TAIL_BYTES) if self.signals else (UNREAD_TAIL_EVENTS, UNREAD_TAIL_BYTES)
        while len(self.tail) > events or (self.tail_bytes > size_bytes and len(self.tail) > 1):
            gone = self.tail.popleft()
            self.tail_bytes -= len(gone.encoded)
            self.dropped = gone.position
            self.is_whole = False

    def after(self, position: int) -> list[StoredEvent] | None:
        """The events above `position`; None when some of them may have left the tail."""
        if position < self.dropped:
            return None
        return [event for event in self.tail if event.position > position]

    def page(self, after_seq: int, position: int) -> EventPage | None:
        """What the store would answer for the run's log above `after_seq`; None when it must be asked.

        `position` is that of the newest event published here; 0 = none was yet, so where the log ends is not known.
        """
        if not self.is_whole or not position:
            return None
        events = tuple(event for event in self.tail if event.seq > after_seq)
        return EventPage(events, 1, self.tail[-1].seq if self.tail else 0, position=position)


@dataclass(slots=True)
class _Reader:
    """Where one follower stands."""

    position: int
    is_caught_up: bool = False
    """It has read the store to the end since it follows, so the tail has what comes after."""


class Followers:
    """All readers of this process. Owner of the topics; told of commits by `published`."""

    def __init__(self, store: Store, clock: Clock, *, metrics: Metrics | None = None) -> None:
        """`metrics`: None = off."""
        self._metrics = metrics or Metrics.off()
        self._store = store
        self._clock = clock
        self._topics: dict[TopicKey, _Topic] = {}
        self._position = 0
        """Of the newest event that was published; 0 = none was yet."""
        self._count = 0
        self._is_leaving = False

    @property
    def store_id(self) -> str:
        """Identity of the store that positions refer to."""
        return self._store.store_id

    @property
    def count(self) -> int:
        """Open subscriptions."""
        return self._count

    @property
    def followed(self) -> int:
        """Logs of which something is kept here: somebody follows them, or they are of runs that have not ended."""
        return len(self._topics)

    def published(self, events: Sequence[StoredEvent]) -> None:
        """These events are durable. Called in commit order, on the event loop."""
        if events:
            self._position = events[-1].position
        if not self._topics:
            return
        for event in events:
            for key in (
                ("run", event.tenant, event.run_id),
                ("session", event.tenant, event.session_key),
                ("all", event.tenant, ""),
            ):
                topic = self._topics.get(key)
                if topic is not None:
                    topic.add(event)
                    for signal in topic.signals:
                        signal.set()

    def run_accepted(self, run: Run) -> None:
        """A new run: its tail is kept from here on, before its first event is published."""
        topic = self._topics.setdefault(("run", run.tenant, run.run_id), _Topic())
        topic.is_unended = topic.is_whole = True

    def run_ended(self, run: Run) -> None:
        """The run's terminal event was published: the tail is for those who follow it by now."""
        key = ("run", run.tenant, run.run_id)
        topic = self._topics.get(key)
        if topic is not None:
            topic.is_unended = topic.is_whole = False
            self._drop_if_unused(key, topic)

    def run_logs_cut(self, run_ids: Sequence[str]) -> None:
        """Retention has removed events of these runs: their tails are not the whole log any more."""
        cut = set(run_ids)
        for (what, _, name), topic in self._topics.items():
            if what == "run" and name in cut:
                topic.is_whole = False

    def leave(self) -> None:
        """The server goes: every follower ends with DRAINING when it has delivered what is stored."""
        self._is_leaving = True
        for topic in self._topics.values():
            for signal in topic.signals:
                signal.set()

    async def follow_run(
        self, tenant: str, run_id: str, after_seq: int | None
    ) -> AsyncGenerator[StoredEvent | Snapshot | Progress, None]:
        """A run's events above `after_seq`, to its terminal one. Without `after_seq` a Snapshot, then all there are.

        Raises RUN_NOT_FOUND; CURSOR_PRUNED, also in mid-stream; CURSOR_AHEAD; DRAINING.
        """
        with self._following(("run", tenant, run_id)) as (topic, signal):
            reader = _Reader(0)
            if after_seq is None:
                run = await self._existing(tenant, run_id)
                yield Snapshot(run, run.first_seq, run.last_seq)
                after_seq = run.first_seq - 1
            seq = after_seq
            first = topic.page(seq, self._position) or await self._run_page(tenant, run_id, seq)
            self._metrics.subscriber_lag(first.latest - seq)
            if seq > first.latest:
                raise _cursor_error(ErrorCode.CURSOR_AHEAD, await self._existing(tenant, run_id))
            if not first.events:
                if first.has_ended:
                    return
                # Who begins at the end of the log has missed nothing up to now; others get a position with each event.
                reader.position = first.position

            async def read() -> EventPage:
                page = await self._run_page(tenant, run_id, seq)
                self._metrics.subscriber_lag(page.latest - seq)
                return page

            async for item in self._read_on(topic, signal, reader, read, first=first):
                if isinstance(item, StoredEvent):
                    if item.seq <= seq:
                        continue
                    if item.seq != seq + 1:
                        raise await self._pruned(tenant, run_id)
                    seq = item.seq
                yield item
                if isinstance(item, StoredEvent) and item.is_last:
                    return

    async def follow_session(
        self, tenant: str, session_key: str, position: int | None
    ) -> AsyncGenerator[StoredEvent | Progress, None]:
        """A session's events in commit order, without end. Without `position` from its oldest unended run, else from
        its last one; a session that does not exist yet is no error. Raises CURSOR_PRUNED, CURSOR_AHEAD, DRAINING."""
        key = canonical_key(session_key)
        with self._following(("session", tenant, key)) as (topic, signal):
            start = position if position is not None else await self._store.session_start_position(tenant, key)
            reader, known_earliest = _Reader(start), 0
            if position is None:
                # Events between those of the run it begins with may be gone: of other runs, no gap for this reader.
                known_earliest = (await self._store.session_events(tenant, key, after=start, limit=1)).earliest

            async def read() -> EventPage:
                page = await self._store.session_events(tenant, key, after=reader.position, limit=PAGE_EVENTS)
                return page if page.earliest == known_earliest else _checked(page, reader.position)

            async for item in self._read_on(topic, signal, reader, read):
                yield item

    async def follow_all(self, tenant: str, position: int | None) -> AsyncGenerator[StoredEvent | Progress, None]:
        """Every event of a tenant in commit order, from `position`, else from now, without end. Raises as above."""
        with self._following(("all", tenant, "")) as (topic, signal):
            start = position if position is not None else await self._store.last_position()
            reader = _Reader(start)

            async def read() -> EventPage:
                page = await self._store.all_events(tenant, after=reader.position, limit=PAGE_EVENTS)
                self._metrics.subscriber_lag(page.latest - reader.position)
                return _checked(page, reader.position)

            async for item in self._read_on(topic, signal, reader, read):
                yield item

    async def _read_on(
        self,
        topic: _Topic,
        signal: asyncio.Event,
        reader: _Reader,
        read: Callable[[], Awaitable[EventPage]],
        *,
        first: EventPage | None = None,
    ) -> AsyncGenerator[StoredEvent | Progress, None]:
        """Events above the reader's position, then what is published; Progress after a silence.

        `first` is a page that was read since the topic is followed.
        """
        if first is not None:
            reader.is_caught_up = len(first.events) < PAGE_EVENTS
            for event in first.events:
                reader.position = event.position
                yield event
        while True:
            signal.clear()  # before the read, so that no append is missed
            events = topic.after(reader.position) if reader.is_caught_up else None
            if events is None:
                page = await read()
                events = list(page.events)
                reader.is_caught_up = len(events) < PAGE_EVENTS  # what came after the read is in the tail
            for event in events:
                reader.position = event.position
                yield event
            if events:
                continue
            if self._is_leaving:
                raise LanewayError(
                    ErrorCode.DRAINING,
                    "the server is leaving; subscribe again with the cursor",
                    metadata={"position": str(reader.position)},
                    retry_after_s=1.0,
                )
            if not await self._heard(signal):
                yield Progress(reader.position)

    async def _heard(self, signal: asyncio.Event) -> bool:
        """Wait for the signal; False when nothing came for a while."""
        is_silent = False

        def silent() -> None:
            nonlocal is_silent
            is_silent = not signal.is_set()
            signal.set()

        timer = self._clock.call_later(PROGRESS_AFTER_S, silent)
        try:
            await signal.wait()
        finally:
            timer.cancel()
        return not is_silent

    async def _run_page(self, tenant: str, run_id: str, seq: int) -> EventPage:
        page = await self._store.run_events(tenant, run_id, after_seq=seq, limit=PAGE_EVENTS)
        if page is None:
            raise _not_found(run_id)
        if page.earliest > seq + 1:
            raise await self._pruned(tenant, run_id)
        return page

    async def _existing(self, tenant: str, run_id: str) -> Run:
        run = await self._store.run(tenant, run_id)
        if run is None:
            raise _not_found(run_id)
        return run

    async def _pruned(self, tenant: str, run_id: str) -> LanewayError:
        return _cursor_error(ErrorCode.CURSOR_PRUNED, await self._existing(tenant, run_id))

    @contextmanager
    def _following(self, key: TopicKey) -> Iterator[tuple[_Topic, asyncio.Event]]:
        """Follow a log: its topic exists as long as somebody does."""
        topic = self._topics.setdefault(key, _Topic())
        signal = asyncio.Event()
        topic.signals.add(signal)
        self._count += 1
        self._metrics.subscribers(1)
        try:
            yield topic, signal
        finally:
            self._count -= 1
            self._metrics.subscribers(-1)
            topic.signals.discard(signal)
            self._drop_if_unused(key, topic)

    def _drop_if_unused(self, key: TopicKey, topic: _Topic) -> None:
        if not topic.signals and not topic.is_unended and self._topics.get(key) is topic:
            del self._topics[key]


def _checked(page: EventPage, position: int) -> EventPage:
    """The page, if it goes on where a reader of a session or of everything stands."""
    bounds = {"earliest_position": str(page.earliest - 1), "latest_position": str(page.latest)}
    if position > page.latest:
        raise LanewayError(ErrorCode.CURSOR_AHEAD, "the cursor lies above the last stored event", metadata=bounds)
    if position < page.earliest - 1:
        raise LanewayError(
            ErrorCode.CURSOR_PRUNED, "events above the cursor are gone; begin at the earliest", metadata=bounds
        )
    return page


def _cursor_error(code: ErrorCode, run: Run) -> LanewayError:
    text = "is above the last stored event" if code is ErrorCode.CURSOR_AHEAD else "points at events that are gone"
    return LanewayError(
        code,
        f"after_seq {text}: the log of the run holds {run.first_seq} to {run.last_seq}",
        metadata={
            "earliest_seq": str(run.first_seq),
            "latest_seq": str(run.last_seq),
            "earliest_position": str(run.pruned_position),
        },
    )


def _not_found(run_id: str) -> LanewayError:
    return LanewayError(
        ErrorCode.RUN_NOT_FOUND, "there is no such run, or it is older than the retention", metadata={"run_id": run_id}
    )
