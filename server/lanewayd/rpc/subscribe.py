"""Subscribe, and what RunAgent does after its acceptance: relay a log to a caller under gRPC flow control."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from laneway.v1 import agent_pb2, event_pb2
from lanewayd.clock import Clock
from lanewayd.errors import ErrorCode, FieldError, LanewayError
from lanewayd.events import EventKind, StoredEvent
from lanewayd.records import Run
from lanewayd.rpc.convert import check_enum, refuse_yet
from lanewayd.rpc.cursors import cursor_position, cursor_text
from lanewayd.rpc.event_codec import WireEventCodec, progress_event, snapshot_event
from lanewayd.rpc.interface import Logs, Looks, Runs
from lanewayd.rpc.limits import Limits
from lanewayd.rpc.methods import Call, Send
from lanewayd.rpc.request_fields import required, required_session_key
from lanewayd.rpc.streams import closed_at_the_end
from lanewayd.runs.interface import Progress, Snapshot

LogItem = StoredEvent | Snapshot | Progress

_CURSOR_ERRORS = (ErrorCode.CURSOR_PRUNED, ErrorCode.CURSOR_AHEAD)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a reader wants of a log. `kinds` empty = everything, reasoning as the session has it."""

    kinds: frozenset[str] = frozenset()
    with_results: bool | None = None
    """None: as the session has it."""

    def wants(self, event: StoredEvent) -> bool:
        """Whether the reader gets `event`; the terminal event passes every filter."""
        return event.is_last or not self.kinds or event.kind.value in self.kinds


@dataclass(slots=True)
class _Reading:
    """One subscription under way. `run` is set as soon as it is known, for a subscription to one run."""

    call: Call
    send: Send
    shown: Shown
    run_id: str = ""
    session_key: str = ""
    run: Run | None = None
    position: int | None = None
    """Everything up to here has been sent."""


class Subscriptions:
    """Serves subscriptions. Keeps nothing between them: each reads the log from its own position."""

    def __init__(self, *, runs: Runs, logs: Logs, looks: Looks, clock: Clock, limits: Limits) -> None:
        self._runs = runs
        self._logs = logs
        self._looks = looks
        self._clock = clock
        self._limits = limits
        self._codec = WireEventCodec()

    async def serve(self, request: agent_pb2.SubscribeRequest, call: Call, send: Send) -> None:
        """Answer one Subscribe call. Returns when the run has ended; the other targets end by cancellation or error."""
        shown = _shown(request)
        target = request.WhichOneof("target")
        if target == "run_id":
            run_id = required(request.run_id, "run_id")
            after_seq = _after_seq(request)
            if request.cursor:
                raise _misplaced("cursor", "session_key and all")
            reading = _Reading(call, send, shown, run_id=run_id)
            await self._relay(self._logs.follow_run(call.tenant, run_id, after_seq), reading)
            return
        if request.HasField("after_seq"):
            raise _misplaced("after_seq", "run_id")
        position = cursor_position(request.cursor, self._logs.store_id) if request.cursor else None
        if target == "session_key":
            session_key = required_session_key(request.session_key, self._limits)
            reading = _Reading(call, send, shown, session_key=session_key, position=position)
            await self._relay(self._logs.follow_session(call.tenant, session_key, position), reading)
        elif target == "all" and request.all:
            reading = _Reading(call, send, shown, position=position)
            await self._relay(self._logs.follow_all(call.tenant, position), reading)
        else:
            text = "Name what to read: run_id, session_key, or all = true."
            raise FieldError(ErrorCode.FIELD_INVALID, target or "target", text)

    async def relay_run(self, run_id: str, call: Call, send: Send) -> None:
        """All events of a run from the first one, as a subscription with `after_seq` 0 sends them."""
        reading = _Reading(call, send, Shown(), run_id=run_id)
        await self._relay(self._logs.follow_run(call.tenant, run_id, 0), reading)

    async def _relay(self, items: AsyncIterator[LogItem], reading: _Reading) -> None:
        try:
            async with closed_at_the_end(items):
                async for item in items:
                    await self._send(item, reading)
        except LanewayError as error:
            raise self._with_cursors(error, reading) from error

    async def _send(self, item: LogItem, reading: _Reading) -> None:
        match item:
            case StoredEvent():
                if reading.shown.wants(item):
                    await self._send_stored(item, reading)
                reading.position = item.position
                if reading.session_key:
                    reading.session_key = item.session_key
            case Snapshot():
                reading.run = item.run
                now = self._clock.now()
                await reading.send(snapshot_event(item.run, first_seq=item.first_seq, last_seq=item.last_seq, time=now))
            case Progress():
                await reading.send(await self._progress(item, reading))
                reading.position = item.position

    async def _send_stored(self, event: StoredEvent, reading: _Reading) -> None:
        encoded, shown = event.encoded, reading.shown
        if event.kind is EventKind.REASONING and not shown.kinds:
            if not (await self._looks.of(event.tenant, event.session_key)).shows_reasoning:
                return
        elif event.kind is EventKind.TOOL:
            with_results = shown.with_results
            if with_results is None:
                with_results = (await self._looks.of(event.tenant, event.session_key)).shows_results
            if not with_results:
                encoded = self._codec.without_results(encoded)
        await reading.send(encoded)

    async def _progress(self, item: Progress, reading: _Reading) -> bytes:
        if reading.run_id and reading.run is None:
            reading.run = await self._runs.run(reading.call.tenant, reading.run_id)
        cursor = cursor_text(self._logs.store_id, item.position)
        return progress_event(cursor, time=self._clock.now(), run=reading.run, session_key=reading.session_key)

    def _with_cursors(self, error: LanewayError, reading: _Reading) -> LanewayError:
        """`error` with positions as cursors, so that the reader can go on from them."""
        metadata = dict(error.metadata)
        stands_at = metadata.pop("position", None if reading.position is None else str(reading.position))
        earliest = metadata.pop("earliest_position", None)
        metadata.pop("latest_position", None)
        if error.code is ErrorCode.DRAINING and stands_at is not None:
            metadata["cursor"] = cursor_text(self._logs.store_id, int(stands_at))
        if error.code in _CURSOR_ERRORS and earliest is not None:
            metadata["earliest_cursor"] = cursor_text(self._logs.store_id, int(earliest))
        return LanewayError(error.code, error.message, metadata=metadata, retry_after_s=error.retry_after_s)


def _shown(request: agent_pb2.SubscribeRequest) -> Shown:
    check_enum(agent_pb2.View, request.view, "view")
    if request.view == agent_pb2.VIEW_CHAT:
        raise refuse_yet("view")
    check_enum(agent_pb2.Verbosity, request.verbose, "verbose")
    kinds = set()
    for number in request.streams:
        check_enum(event_pb2.StreamKind, number, "streams")
        if number == event_pb2.STREAM_KIND_UNSPECIFIED:
            raise FieldError(ErrorCode.ENUM_UNKNOWN, "streams", "streams holds STREAM_KIND_UNSPECIFIED.")
        kinds.add(event_pb2.StreamKind.Name(number).removeprefix("STREAM_KIND_").lower())
    return Shown(frozenset(kinds), with_results=_with_results(request.verbose))


def _with_results(verbose: int) -> bool | None:
    return verbose == agent_pb2.VERBOSITY_FULL if verbose else None


def _after_seq(request: agent_pb2.SubscribeRequest) -> int | None:
    if not request.HasField("after_seq"):
        return None
    if request.after_seq < 0:
        raise FieldError(ErrorCode.FIELD_INVALID, "after_seq", "after_seq cannot be negative.")
    return request.after_seq


def _misplaced(field: str, target: str) -> FieldError:
    return FieldError(ErrorCode.FIELD_INVALID, field, f"{field} goes with {target} only.")
