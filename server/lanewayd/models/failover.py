"""What a run does about a failed model call: one move. Pure. Source: spec 04, section 6; 05, section 5.

Where the rules leave it open: a fault that passes by itself (5xx, no connection) is waited for, 1, 2, 4 s, only when no
credential and no model is left to go on with; a chain of one model is not repeated on overload, it is waited for so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from lanewayd.messages import FailureClass, ThinkingLevel

LONGEST_WAIT_S = 60.0
MAX_BACKOFFS = 3
MAX_LIMIT_RETRIES = 3
MAX_SILENT_RETRIES = 3
MAX_MISSING_RETRIES = 1
MAX_IDLE_RETRIES = 1
MAX_IDLE_IN_A_ROW = 5
MAX_ROUNDS = 10
_FIRST_ROUND_S, _LONGEST_ROUND_S = 2.5, 30.0
_LIMIT_STEP_S = 10.0

_K = FailureClass
NOT_FAILOVER_WORTHY = frozenset({_K.CONTEXT_OVERFLOW, _K.REFUSAL, _K.FORMAT})
"""Another credential would not help; R-4.64, R-4.69, R-4.70."""
_SILENT = frozenset({_K.SERVER_ERROR, _K.UNCLASSIFIED, _K.NO_ERROR_DETAILS, _K.UNKNOWN, _K.EMPTY_RESPONSE})
_ENDS_AT_CAP = frozenset({_K.TIMEOUT, _K.FORMAT, _K.SESSION_EXPIRED})
_SAYS_NOTHING_OF_CREDENTIAL = NOT_FAILOVER_WORTHY | {_K.MODEL_NOT_FOUND, _K.SESSION_EXPIRED, _K.EMPTY_RESPONSE}


class Stage(StrEnum):
    """PROMPT: the request failed before an answer began; ASSISTANT: in the answer, or in the silence before it."""

    PROMPT = "prompt"
    ASSISTANT = "assistant"


class Move(StrEnum):
    """What is done. Those up to LOWER_THINKING call the same model with the same credential again."""

    BACK_OFF = "back_off"
    WAIT_FOR_LIMIT = "wait_for_limit"
    AGAIN_AFTER_IDLE = "again_after_idle"
    AGAIN_AFTER_SILENCE = "again_after_silence"
    AGAIN_AFTER_NOTHING = "again_after_nothing"
    REFRESH = "refresh"
    LOWER_THINKING = "lower_thinking"
    ROTATE = "rotate"
    NEXT_MODEL = "next_model"
    REPEAT_CHAIN = "repeat_chain"
    SURFACE = "surface"

    @property
    def leaves_credential(self) -> bool:
        """The credential is given up for now."""
        return self in (Move.ROTATE, Move.NEXT_MODEL, Move.REPEAT_CHAIN, Move.SURFACE)


@dataclass(frozen=True, slots=True)
class Step:
    """A move, and the wait before the call that it leads to."""

    move: Move
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """What matters of a failed call."""

    kind: FailureClass
    stage: Stage = Stage.PROMPT
    is_transient: bool = False
    """The same request may succeed in a while; of a rate limit: its window is short (R-4.58)."""
    is_idle: bool = False
    is_missing: bool = False
    """The call ended without any outcome."""
    is_cut: bool = False
    """The answer broke off."""
    has_text: bool = False
    """Visible text was shown by it."""
    has_content: bool = False
    """Text or reasoning was shown by it."""
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """What was tried so far. Those in a row are 0 again when a call was answered."""

    attempts: int = 0
    """Failed calls of this model in this run."""
    idle_in_a_row: int = 0
    idle: int = 0
    limits: int = 0
    """Waits for a rate limit, in a row: 0 again when anything else is tried (R-4.61)."""
    backoffs: int = 0
    silent: int = 0
    missing: int = 0
    has_refreshed: bool = False
    """The credential in use was read anew."""
    rotations: Mapping[FailureClass, int] = field(default_factory=dict)
    """Why credentials of this model were left."""
    rounds: int = 0

    def failed(self, failure: Failure) -> "Counts":
        """One more call has failed."""
        idle_in_a_row = self.idle_in_a_row + 1 if failure.is_idle else self.idle_in_a_row
        return replace(self, attempts=self.attempts + 1, idle_in_a_row=idle_in_a_row)

    def moved(self, move: Move, kind: FailureClass) -> "Counts":
        """The move is made."""
        counts = self if move is Move.WAIT_FOR_LIMIT else replace(self, limits=0)
        match move:
            case Move.WAIT_FOR_LIMIT:
                return replace(counts, limits=counts.limits + 1)
            case Move.BACK_OFF:
                return replace(counts, backoffs=counts.backoffs + 1)
            case Move.AGAIN_AFTER_IDLE:
                return replace(counts, idle=counts.idle + 1)
            case Move.AGAIN_AFTER_SILENCE:
                return replace(counts, silent=counts.silent + 1)
            case Move.AGAIN_AFTER_NOTHING:
                return replace(counts, missing=counts.missing + 1)
            case Move.REFRESH:
                return replace(counts, has_refreshed=True)
            case Move.ROTATE:
                rotations = {**counts.rotations, kind: counts.rotations.get(kind, 0) + 1}
                return replace(counts, rotations=rotations, has_refreshed=False)
            case Move.NEXT_MODEL:
                return Counts(idle_in_a_row=counts.idle_in_a_row, rounds=counts.rounds)
            case Move.REPEAT_CHAIN:
                return Counts(idle_in_a_row=counts.idle_in_a_row, rounds=counts.rounds + 1)
        return counts

    def answered(self) -> "Counts":
        """A call was answered: only the cap on the run's attempts goes on."""
        return Counts(attempts=self.attempts)


@dataclass(frozen=True, slots=True)
class Options:
    """What is left to go on with, and what the run has done."""

    profiles: int = 1
    """Credentials of the provider."""
    can_refresh: bool = False
    can_rotate: bool = False
    """Another credential of the provider can be used now."""
    lower_level: ThinkingLevel | None = None
    """What to ask instead, when the failure is about the thinking level and one is left (R-4.25)."""
    has_fallback: bool = False
    """The chain has more than one model."""
    has_next: bool = False
    """A model that can be called comes later in the chain."""
    is_replay_safe: bool = True
    """Nothing the run did changed anything outside (R-5.96)."""
    has_output: bool = False
    """Something of this run was said or a tool was started."""
    all_overloaded: bool = False
    """Each model of the chain, this one included, failed for overload and nothing else."""


def attempts_cap(profiles: int) -> int:
    """Calls of one model that may fail in a run."""
    return min(160, max(32, 24 + 8 * profiles))


def next_step(failure: Failure, counts: Counts, options: Options) -> Step:
    """What to do; `counts` includes this failure. First match decides."""
    kind = failure.kind
    if counts.attempts >= attempts_cap(options.profiles):
        goes_on = options.has_next and kind not in _ENDS_AT_CAP | NOT_FAILOVER_WORTHY
        return Step(Move.NEXT_MODEL if goes_on else Move.SURFACE)
    if counts.idle_in_a_row >= MAX_IDLE_IN_A_ROW or kind is FailureClass.CONTEXT_OVERFLOW:
        return Step(Move.SURFACE)
    if options.lower_level is not None:
        return Step(Move.LOWER_THINKING)
    if kind is FailureClass.FORMAT:
        return Step(Move.SURFACE)
    if kind is FailureClass.REFUSAL:
        return Step(Move.NEXT_MODEL if options.has_next and not failure.has_text else Move.SURFACE)
    step = _again_at_once(failure, counts, options)
    if step is None and options.can_rotate and _may_rotate(failure, counts):
        step = Step(Move.ROTATE)
    return step or _after_rotation(failure, counts, options)


def _again_at_once(failure: Failure, counts: Counts, options: Options) -> Step | None:
    """The retries that come before another credential is taken."""
    if failure.is_missing:
        may_retry = options.is_replay_safe and counts.missing < MAX_MISSING_RETRIES
        return Step(Move.AGAIN_AFTER_NOTHING) if may_retry else None
    is_silent = failure.stage is Stage.ASSISTANT and failure.kind in _SILENT and not failure.has_text
    if is_silent and options.is_replay_safe and counts.silent < MAX_SILENT_RETRIES:
        return Step(Move.AGAIN_AFTER_SILENCE, _backoff_s(counts.silent, failure) or 0.0)
    if failure.kind is FailureClass.AUTH and options.can_refresh and not counts.has_refreshed:
        return Step(Move.REFRESH)
    if failure.kind is FailureClass.RATE_LIMIT and _may_wait_for_limit(failure, counts):
        return Step(Move.WAIT_FOR_LIMIT, limit_delay_s(counts.limits, failure.retry_after_s))
    return None


def _after_rotation(failure: Failure, counts: Counts, options: Options) -> Step:
    """No other credential helps."""
    may_retry_idle = failure.is_idle and not failure.has_content and counts.idle < MAX_IDLE_RETRIES
    if may_retry_idle and not options.has_fallback:
        return Step(Move.AGAIN_AFTER_IDLE)
    if options.has_next:
        return Step(Move.NEXT_MODEL)
    if options.all_overloaded and options.has_fallback and not options.has_output and counts.rounds < MAX_ROUNDS:
        return Step(Move.REPEAT_CHAIN, round_delay_s(counts.rounds))
    if failure.is_transient and failure.kind is not FailureClass.RATE_LIMIT:
        used = counts.backoffs + counts.silent
        delay_s = _backoff_s(used, failure)
        if delay_s is not None and used < MAX_BACKOFFS and not (failure.is_cut and failure.has_content):
            return Step(Move.BACK_OFF, delay_s)
    return Step(Move.SURFACE)


def _may_rotate(failure: Failure, counts: Counts) -> bool:
    """The table of section 6, and R-4.57: one rotation each for overload and for a rate limit."""
    if failure.kind is FailureClass.TIMEOUT and failure.stage is Stage.PROMPT:
        return False
    if failure.kind in (FailureClass.OVERLOADED, FailureClass.RATE_LIMIT):
        return counts.rotations.get(failure.kind, 0) < 1
    return True


def _may_wait_for_limit(failure: Failure, counts: Counts) -> bool:
    """R-4.58, R-4.59, R-4.62."""
    if not failure.is_transient or (failure.retry_after_s or 0.0) > LONGEST_WAIT_S:
        return False
    return counts.limits < MAX_LIMIT_RETRIES and not counts.rotations.get(FailureClass.RATE_LIMIT)


def limit_delay_s(retries: int, retry_after_s: float | None) -> float:
    """The wait before the retry that follows `retries` ones (R-4.60)."""
    return min(LONGEST_WAIT_S, max(_LIMIT_STEP_S * (retries + 1), retry_after_s or 0.0))


def round_delay_s(rounds: int) -> float:
    """The wait before a chain is called again that was called `rounds` + 1 times (R-4.76)."""
    return min(_LONGEST_ROUND_S, _FIRST_ROUND_S * 2.0**rounds)


def _backoff_s(tries: int, failure: Failure) -> float | None:
    """1, 2, 4 s; a Retry-After of the server raises it, and one above 60 s forbids to wait."""
    if failure.retry_after_s is not None and failure.retry_after_s > LONGEST_WAIT_S:
        return None
    return max(2.0**tries, failure.retry_after_s or 0.0)


def tells_of_credential(failure: Failure, step: Step, *, has_connected: bool) -> bool:
    """The failure goes into the health of the credential (R-4.50, R-5.99): it is left, and it may be the reason."""
    return step.move.leaves_credential and has_connected and failure.kind not in _SAYS_NOTHING_OF_CREDENTIAL
