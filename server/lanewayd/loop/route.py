"""Which model, credential and thinking level the next call of a run uses (spec 04, 4 to 6).

A thin shell: it holds where the chain of a run stands and asks; models/failover.py and models/entering.py decide.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lanewayd.clock import Clock
from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.loop.incomplete import Conduct
from lanewayd.loop.tried import Tried, chain_error, skipped
from lanewayd.messages import FailureClass, RunError, ThinkingLevel
from lanewayd.models.candidates import Candidate
from lanewayd.models.entering import TRANSIENT, Entry, Place, ProbeThrottle, entry
from lanewayd.models.entering import without_siblings_first as siblings_last
from lanewayd.models.failover import Counts, Failure, Move, Options, Stage, Step, next_step, tells_of_credential
from lanewayd.models.interface import Cooling, Profiles
from lanewayd.models.thinking import next_level
from lanewayd.providers.interface import Failed, ModelRequest, Provider

_OK = 200


@dataclass(frozen=True, slots=True)
class Leg:
    """What a call uses."""

    candidate: Candidate
    provider: Provider
    profile: str = ""
    thinking: ThinkingLevel | None = None
    instead_of: RunError | None = None
    """Why not the one before it in the chain; told with the first call only."""

    def request(self, request: ModelRequest) -> ModelRequest:
        """`request` for this model. What the run does not say, the params of the settings do."""
        params = self.candidate.params
        return replace(
            request,
            model=self.candidate.model,
            facts=self.candidate.facts,
            profile=self.profile,
            thinking=self.thinking,
            cache_retention=self.candidate.cache_retention,
            max_output_tokens=request.max_output_tokens or params.max_output_tokens,
            temperature=params.temperature if request.temperature is None else request.temperature,
            seed=params.seed if request.seed is None else request.seed,
            params=params.fields,
        )


@dataclass(frozen=True, slots=True)
class RouteParts:
    """What a route asks."""

    provider: Callable[[str], Provider]
    """Raises LanewayError when its settings are gone."""
    profiles: Profiles
    probes: ProbeThrottle
    clock: Clock


@dataclass(frozen=True, slots=True)
class _Found:
    """A model of the chain that can be called."""

    at: int
    leg: Leg
    probes: bool


class Route:
    """The chain of one dispatch. Owner of where it stands and of what was tried."""

    def __init__(self, chain: Sequence[Candidate], parts: RouteParts, *, session_id: str) -> None:
        """`chain` has at least one model, the one that the run asks for first."""
        self._chain = tuple(chain)
        self._requested = self._chain[0].reference
        self._parts = parts
        self._session_id = session_id
        self._at = 0
        self._leg: Leg | None = None
        self._counts = Counts()
        self._tried: list[Tried] = []
        self._round_began = 0
        self._profiles_tried: set[str] = set()
        self._levels_tried: set[ThinkingLevel] = set()
        self._probed: set[str] = set()
        """Providers; for good: a chain comes back to its first model, the only one that is probed, only when all were
        overloaded, so no probe has failed for a reason that R-4.73 does not count."""

    async def leg(self) -> Leg | RunError:
        """What the next call uses; the error when no model of the chain can be called."""
        if self._leg is not None:
            leg, self._leg = self._leg, replace(self._leg, instead_of=None)
            return leg
        found = await self._scan(self._at)
        if found is None:
            return self._exhausted(None)
        passed_over = self._tried[self._round_began :]
        self._enter(found, instead_of=passed_over[-1].error if passed_over else None)
        return await self.leg()

    async def failed(self, failed: Failed, conduct: Conduct) -> Step:
        """The call with the last leg failed: what is done now. For SURFACE see `error_of`."""
        assert self._leg is not None, "a failure without a call"  # noqa: S101 - a bug of the caller
        leg, failure = self._leg, failure_of(failed)
        self._tried.append(Tried.of(failed, leg.candidate, leg.profile))
        counts = self._counts.failed(failure)
        options = self._options(failed, leg, conduct)
        is_told = False
        while True:
            step = next_step(failure, counts, options)
            if not is_told and tells_of_credential(failure, step, has_connected=_has_connected(failed)):
                await self._tell_failure(failed, leg)
                is_told = True
            if await self._moved(step.move, leg, failed, options):
                self._counts = counts.moved(step.move, failure.kind)
                return step
            options = replace(_without(step.move, options), all_overloaded=self._is_all_overloaded)

    def error_of(self, failed: Failed) -> RunError:
        """The error that a failure ends the run with, when it is surfaced."""
        return self._exhausted(failed)

    async def answered(self) -> None:
        """The call with the last leg was answered."""
        self._counts = self._counts.answered()
        self._tried, self._round_began = [], 0
        if self._leg is not None:
            self._profiles_tried = {self._leg.profile}
            await self._parts.profiles.succeeded(self._leg.candidate.provider, self._leg.profile)

    # --- moving ------------------------------------------------------------------------------------------------------

    async def _moved(self, move: Move, leg: Leg, failed: Failed, options: Options) -> bool:
        """Make the move; False when it turns out not to be possible."""
        profiles, candidate = self._parts.profiles, leg.candidate
        match move:
            case Move.REFRESH:
                return await profiles.refresh(candidate.provider, leg.profile)
            case Move.ROTATE:
                picked = await profiles.pick(
                    candidate.provider, candidate.model, session_id=self._session_id, tried=self._profiles_tried
                )
                if not isinstance(picked, str):
                    return False
                self._use(replace(leg, profile=picked, thinking=candidate.thinking))
            case Move.NEXT_MODEL:
                found = await self._scan(self._at + 1)
                if found is None:
                    return False
                self._enter(found, instead_of=failed.error)
            case Move.LOWER_THINKING:
                self._leg = replace(leg, thinking=options.lower_level)
                self._levels_tried.update([options.lower_level] if options.lower_level else [])
            case Move.REPEAT_CHAIN:
                self._at, self._leg, self._round_began = 0, None, len(self._tried)
        return True

    def _use(self, leg: Leg) -> None:
        self._leg = leg
        self._profiles_tried.add(leg.profile)
        self._levels_tried = {leg.thinking} if leg.thinking is not None else set()

    def _enter(self, found: _Found, *, instead_of: RunError | None) -> None:
        self._at = found.at
        self._profiles_tried = set()
        self._use(replace(found.leg, instead_of=instead_of))
        if found.probes:
            provider = found.leg.candidate.provider
            self._probed.add(provider)
            self._parts.probes.probed(provider, self._parts.clock.monotonic())

    async def _scan(self, start: int) -> _Found | None:
        """The first model from `start` on that can be called; those before it are noted as skipped."""
        at = start
        while at < len(self._chain):
            candidate = self._chain[at]
            try:
                provider = self._parts.provider(candidate.provider)
            except LanewayError as error:
                self._tried.append(Tried(candidate, FailureClass.UNKNOWN, RunError(error.code.value, error.message)))
                at += 1
                continue
            picked = await self._parts.profiles.pick(candidate.provider, candidate.model, session_id=self._session_id)
            how = Entry.TRY if isinstance(picked, str) else self._entry(at, picked)
            if how is not Entry.SKIP:
                profile = picked if isinstance(picked, str) else picked.profile if picked is not None else ""
                leg = Leg(candidate, provider, profile, candidate.thinking)
                return _Found(at, leg, how is Entry.PROBE)
            if isinstance(picked, Cooling):
                self._tried.append(skipped(candidate, picked))
                if at == 0 and picked.kind in TRANSIENT:
                    self._chain = siblings_last(self._chain)
            at += 1
        return None

    def _entry(self, at: int, cooling: Cooling | None) -> Entry:
        if cooling is None:
            return Entry.SKIP
        provider, now_s = self._chain[at].provider, self._parts.clock.monotonic()
        place = Place(at == 0, self._chain[at].reference == self._requested, len(self._chain) > 1)
        may_probe = provider not in self._probed and self._parts.probes.is_open(provider, now_s)
        return entry(cooling.kind, cooling.ends_in_s, place, may_probe=may_probe)

    # --- what is told ------------------------------------------------------------------------------------------------

    def _options(self, failed: Failed, leg: Leg, conduct: Conduct) -> Options:
        return Options(
            profiles=self._parts.profiles.count(leg.candidate.provider),
            can_refresh=True,
            can_rotate=True,
            lower_level=self._lower_level(failed, leg),
            has_fallback=len(self._chain) > 1,
            has_next=self._at + 1 < len(self._chain),
            is_replay_safe=conduct.is_replay_safe,
            has_output=conduct.has_output or bool(failed.partial.content),
            all_overloaded=self._is_all_overloaded,
        )

    @property
    def _is_all_overloaded(self) -> bool:
        """What failed or was skipped since the chain began is overload and nothing else."""
        return all(each.kind is FailureClass.OVERLOADED for each in self._tried[self._round_began :])

    def _lower_level(self, failed: Failed, leg: Leg) -> ThinkingLevel | None:
        if leg.thinking is None or failed.kind is not FailureClass.FORMAT:
            return None
        return next_level(failed.error.message, frozenset(self._levels_tried), leg.candidate.facts)

    async def _tell_failure(self, failed: Failed, leg: Leg) -> None:
        await self._parts.profiles.failed(
            leg.candidate.provider,
            leg.candidate.model,
            leg.profile,
            failed.kind,
            retry_after_s=failed.retry_after_s,
        )

    def _exhausted(self, failed: Failed | None) -> RunError:
        """The one error of all that was tried (R-4.77)."""
        asked = [self._parts.profiles.cooling(candidate.provider, candidate.model) for candidate in self._chain]
        soonest_s = min((cooling.ends_in_s for cooling in asked if cooling is not None), default=None)
        return chain_error(self._tried, failed.error if failed is not None else None, soonest_s=soonest_s)


def failure_of(failed: Failed) -> Failure:
    """What the decision must know of it."""
    error, content = failed.error, failed.partial.content
    is_answered = error.http_status == _OK or failed.is_idle or bool(content)
    return Failure(
        failed.kind,
        Stage.ASSISTANT if is_answered else Stage.PROMPT,
        is_transient=failed.is_transient,
        is_idle=failed.is_idle,
        is_missing=failed.finer is FailureClass.EMPTY_RESPONSE and not error.http_status,
        is_cut=error.reason == ErrorCode.PROVIDER_STREAM_CUT.value,
        has_text=bool(failed.partial.text.strip()),
        has_content=bool(content),
        retry_after_s=failed.retry_after_s,
    )


def _has_connected(failed: Failed) -> bool:
    """What failed was the service, not the way to it or its language."""
    reason = failed.error.reason
    if reason == ErrorCode.PROVIDER_UNREACHABLE.value:
        return False
    return not (reason == ErrorCode.PROVIDER_BAD_RESPONSE.value and failed.kind is FailureClass.TIMEOUT)


def _without(move: Move, options: Options) -> Options:
    """The move was not possible."""
    if move is Move.REFRESH:
        return replace(options, can_refresh=False)
    if move is Move.ROTATE:
        return replace(options, can_rotate=False)
    return replace(options, has_next=False)
