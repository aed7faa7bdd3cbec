"""The instruments, and one function per measurement.

No attribute carries an id or a text that a caller or a model chose: what the settings do not name counts as `other`.
What is only counted costs a dictionary's update, a duration a few microseconds; off, both cost next to nothing. All
functions belong to the event loop's thread but `group_committed`, which may be called on any.
"""

import re
from dataclasses import dataclass
from typing import Protocol

from opentelemetry.metrics import Histogram, Meter, NoOpMeter

from lanewayd.telemetry import names
from lanewayd.telemetry.names import NAMES, OTHER, Semconv
from lanewayd.telemetry.tally import Tally

RUN_BUCKETS_S = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400, 172_800)
"""Up to 48 h, the default budget of a run."""
CALL_BUCKETS_S = (
    0.01,
    0.02,
    0.04,
    0.08,
    0.16,
    0.32,
    0.64,
    1.28,
    2.56,
    5.12,
    10.24,
    20.48,
    40.96,
    81.92,
    163.84,
    327.68,
)
CHUNK_BUCKETS_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 120)
RPC_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600, 3600)
COMMIT_BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30)
TOKEN_BUCKETS = (1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304)
COUNT_BUCKETS = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 100, 250, 1000, 5000)

_OWN_STOP_REASONS = {"error", "deadline", "rpc", "stop_word", "interrupt", "reset", "deleted", "dropped"}
_MODEL_STOP_REASONS = {"stop", "length", "tool_use", "tool_calls", "end_turn", "max_tokens", "stop_sequence"}
_STOP_REASONS = frozenset(_OWN_STOP_REASONS | _MODEL_STOP_REASONS)
"""Ours, and those of model services that are counted apart."""
_REASON = re.compile(r"[A-Z][A-Z_]{1,39}")

_CALL_ATTRIBUTES = (names.OPERATION, names.PROVIDER, names.REQUEST_MODEL)

Attributes = dict[str, str]


class Tokens(Protocol):
    """What a model call used; `input_tokens` excludes what came from or went into a cache."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def cache_read_tokens(self) -> int: ...
    @property
    def cache_write_tokens(self) -> int: ...
    @property
    def reasoning_tokens(self) -> int: ...
    @property
    def unavailable(self) -> bool: ...


def whole_input(tokens: Tokens) -> int:
    """Input tokens as the conventions count them: with those of caches."""
    return tokens.input_tokens + tokens.cache_read_tokens + tokens.cache_write_tokens


def known_stop_reason(stop_reason: str) -> str:
    """`stop_reason`, or `other` for what only one model service says."""
    is_known = stop_reason in _STOP_REASONS or _REASON.fullmatch(stop_reason) is not None
    return stop_reason if is_known else OTHER


@dataclass(frozen=True, slots=True)
class Known:
    """What the settings name, and metrics may therefore carry."""

    lanes: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()
    """`provider/model`"""


class Metrics:
    """All instruments of a service."""

    def __init__(self, meter: Meter, *, semconv: Semconv = Semconv.V0_1_0, known: Known = Known()) -> None:
        self._known = known
        self._names = NAMES[semconv]
        self._make_own_instruments(meter)
        self._make_convention_instruments(meter)

    @classmethod
    def off(cls) -> "Metrics":
        """Measures nothing."""
        return cls(NoOpMeter(names.SCOPE))

    # --- lanes and runs ----------------------------------------------------------------------------------------------

    def lane_queued(self, lane: str, priority: str, change: int) -> None:
        """Runs began (+) or ceased (-) to wait in a lane."""
        self._lane_queued.add(change, self._known_lane(lane), priority)

    def lane_active(self, lane: str, priority: str, change: int) -> None:
        """Runs began (+) or ceased (-) to hold a place of a lane."""
        self._lane_active.add(change, self._known_lane(lane), priority)

    def lane_waited(self, lane: str, priority: str, waited_s: float) -> None:
        """A run was dispatched for the first time, so long after it was accepted."""
        self._lane_wait.record(waited_s, {names.LANE: self._known_lane(lane), names.PRIORITY: priority})

    def run_accepted(self, lane: str, priority: str) -> None:
        """A run is durable; duplicates do not count."""
        self._accepted.add(1, self._known_lane(lane), priority)

    def run_ended(self, status: str, stop_reason: str) -> None:
        """A run has its terminal event. `stop_reason`: of an error its reason."""
        self._ended.add(1, status, known_stop_reason(stop_reason))

    def run_recovered(self) -> None:
        """A run that another process had started was dispatched again."""
        self._recovered.add(1)

    def session_diagnosed(self, event: str, reason: str) -> None:
        """Liveness has told of a session: `session.stalled` and the like, and why."""
        tally = self._diagnosed.get(event)
        if tally is not None:
            tally.add(1, reason)

    # --- events and store --------------------------------------------------------------------------------------------

    def subscribers(self, change: int) -> None:
        """Subscriptions opened (+) or closed (-)."""
        self._subscribers.add(change)

    def subscriber_lag(self, events: int) -> None:
        """A subscription read the store while so many events lay before it."""
        self._lag.record(max(0, events))

    def events_appended(self, count: int) -> None:
        """Events are durable."""
        self._events.add(count)

    def group_committed(self, commands: int, spent_s: float) -> None:
        """A group of so many commands is durable, so long after its first one was submitted."""
        self._commit_seconds.record(spent_s)
        self._batch_rows.record(commands)

    def audit_dropped(self, records: int) -> None:
        """So many audit records were lost."""
        self._audit_dropped.add(records)

    def loop_lag(self, lag_s: float) -> None:
        """A timer of the event loop fired so late."""
        self._loop_lag.record(lag_s)

    # --- calls -------------------------------------------------------------------------------------------------------

    def call_answered(self, method: str, status_code: str, duration_s: float) -> None:
        """A call of our services is over; `method` as `package.Service/Method`, `status_code` by its name."""
        self._rpc_duration.record(
            duration_s, {names.RPC_SYSTEM: "grpc", names.RPC_METHOD: method, names.RPC_STATUS: status_code}
        )

    def model_called(self, provider: str, model: str, duration_s: float, *, error_type: str = "") -> Attributes:
        """A model call is over; the attributes that its other measurements carry, without the error."""
        known = model if f"{provider}/{model}" in self._known.models else OTHER
        attributes = {
            names.OPERATION: names.CHAT,
            names.PROVIDER: names.PROVIDER_NAMES.get(provider, provider),
            names.REQUEST_MODEL: known,
        }
        with_error = {**attributes, names.ERROR_TYPE: error_type} if error_type else attributes
        self._inference_duration.record(duration_s, with_error)
        return attributes

    def chunks_received(self, attributes: Attributes, first_s: float, per_chunk_s: float | None) -> None:
        """The first chunk came after `first_s`; each further one took `per_chunk_s` on average: one value a call."""
        self._first_chunk.record(first_s, attributes)
        if per_chunk_s is not None:
            self._per_chunk.record(per_chunk_s, attributes)

    def tokens_used(self, attributes: Attributes, tokens: Tokens) -> None:
        """What a model call used; nothing when the service did not say."""
        if tokens.unavailable:
            return
        used = whole_input(tokens)
        if self._token_usage is not None:
            self._token_usage.record(used, {**attributes, names.TOKEN_TYPE: "input"})
            self._token_usage.record(tokens.output_tokens, {**attributes, names.TOKEN_TYPE: "output"})
            return
        self._input_per_call.record(used, attributes)
        self._output_per_call.record(tokens.output_tokens, attributes)
        for tally, count in (
            (self._input_tokens, used),
            (self._output_tokens, tokens.output_tokens),
            (self._cache_read, tokens.cache_read_tokens),
            (self._cache_write, tokens.cache_write_tokens),
            (self._reasoning, tokens.reasoning_tokens),
        ):
            if count:
                tally.add(count, *attributes.values())

    def tool_called(self, tool: str, duration_s: float, *, error_type: str = "") -> None:
        """A call of an offered tool is over."""
        if self._names.has_agent_metrics:
            attributes = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL: tool}
            if error_type:
                attributes[names.ERROR_TYPE] = error_type
            self._tool_duration.record(duration_s, attributes)

    def agent_invoked(
        self, agent: str, duration_s: float, *, model_calls: int, tool_calls: int, error_type: str = ""
    ) -> None:
        """A run has ended after executing for `duration_s`; the calls are those of its last dispatch."""
        if self._names.has_agent_metrics:
            attributes = {names.OPERATION: names.INVOKE_AGENT, names.AGENT: agent}
            self._agent_model_calls.record(model_calls, attributes)
            self._agent_tool_calls.record(tool_calls, attributes)
            if error_type:
                attributes = {**attributes, names.ERROR_TYPE: error_type}
            self._agent_duration.record(duration_s, attributes)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _known_lane(self, lane: str) -> str:
        return lane if lane in self._known.lanes else OTHER

    def _make_own_instruments(self, meter: Meter) -> None:
        self._lane_queued = _current(meter, names.LANE_QUEUED, "{run}", Tally(names.LANE, names.PRIORITY))
        self._lane_active = _current(meter, names.LANE_ACTIVE, "{run}", Tally(names.LANE, names.PRIORITY))
        waited = "From acceptance to the first dispatch"
        self._lane_wait = _histogram(meter, names.LANE_WAIT, "s", waited, RUN_BUCKETS_S)
        self._accepted = _total(meter, names.RUNS_ACCEPTED, "{run}", Tally(names.LANE, names.PRIORITY))
        self._ended = _total(meter, names.RUNS_ENDED, "{run}", Tally(names.STATUS, names.STOP_REASON))
        self._recovered = _total(meter, names.RUNS_RECOVERED, "{run}", Tally())
        self._diagnosed = {
            event: _total(meter, f"{names.OWN}.{event}", "{session}", Tally(names.REASON))
            for event in (names.LONG_RUNNING, names.STALLED, names.STUCK)
        }
        self._subscribers = _current(meter, names.SUBSCRIBERS, "{subscription}", Tally())
        self._events = _total(meter, names.EVENTS_APPENDED, "{event}", Tally())
        self._audit_dropped = _total(meter, names.AUDIT_DROPPED, "{record}", Tally())
        lag = "Events between a subscription and the end of its log, at each read of the store"
        self._lag = _histogram(meter, names.SUBSCRIBER_LAG, "{event}", lag, COUNT_BUCKETS)
        spent = "From the first command of a group to its durability"
        self._commit_seconds = _histogram(meter, names.COMMIT_SECONDS, "s", spent, COMMIT_BUCKETS_S)
        self._batch_rows = _histogram(meter, names.BATCH_ROWS, "{command}", "Commands of one commit", COUNT_BUCKETS)
        late = "How late a timer of the event loop fires"
        self._loop_lag = _histogram(meter, names.LOOP_LAG, "s", late, CHUNK_BUCKETS_S)
        self._rpc_duration = _histogram(meter, names.RPC_DURATION, "s", "Duration of calls", RPC_BUCKETS_S)

    def _make_convention_instruments(self, meter: Meter) -> None:
        current = self._names
        self._inference_duration = _histogram(
            meter, current.inference_duration, "s", "Duration of model calls", CALL_BUCKETS_S
        )
        self._first_chunk = _histogram(
            meter, current.time_to_first_chunk, "s", "From a model call to its first chunk", CHUNK_BUCKETS_S
        )
        self._per_chunk = _histogram(
            meter, current.time_per_output_chunk, "s", "Time per chunk after the first", CHUNK_BUCKETS_S
        )
        self._token_usage: Histogram | None = None
        if current.token_usage:
            self._token_usage = _histogram(
                meter, current.token_usage, "{token}", "Tokens of a model call", TOKEN_BUCKETS
            )
            return
        self._input_per_call = _histogram(meter, names.INPUT_PER_CALL, "{token}", "Input of a call", TOKEN_BUCKETS)
        self._output_per_call = _histogram(meter, names.OUTPUT_PER_CALL, "{token}", "Output of a call", TOKEN_BUCKETS)
        self._input_tokens = _total(meter, names.TOKENS_INPUT, "{token}", Tally(*_CALL_ATTRIBUTES))
        self._output_tokens = _total(meter, names.TOKENS_OUTPUT, "{token}", Tally(*_CALL_ATTRIBUTES))
        self._cache_read = _total(meter, names.TOKENS_CACHE_READ, "{token}", Tally(*_CALL_ATTRIBUTES))
        self._cache_write = _total(meter, names.TOKENS_CACHE_WRITE, "{token}", Tally(*_CALL_ATTRIBUTES))
        self._reasoning = _total(meter, names.TOKENS_REASONING, "{token}", Tally(*_CALL_ATTRIBUTES))
        self._tool_duration = _histogram(meter, names.TOOL_DURATION, "s", "Duration of tool calls", RUN_BUCKETS_S)
        self._agent_duration = _histogram(meter, names.AGENT_DURATION, "s", "Executing time of runs", RUN_BUCKETS_S)
        self._agent_model_calls = _histogram(
            meter, names.AGENT_INFERENCE_CALLS, "{call}", "Model calls of a run", COUNT_BUCKETS
        )
        self._agent_tool_calls = _histogram(
            meter, names.AGENT_TOOL_CALLS, "{call}", "Tool calls of a run", COUNT_BUCKETS
        )


def _histogram(meter: Meter, name: str, unit: str, description: str, buckets: tuple[float, ...]) -> Histogram:
    return meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=buckets)


def _total(meter: Meter, name: str, unit: str, tally: Tally) -> Tally:
    meter.create_observable_counter(name, [tally.observe], unit)
    return tally


def _current(meter: Meter, name: str, unit: str, tally: Tally) -> Tally:
    meter.create_observable_up_down_counter(name, [tally.observe], unit)
    return tally
