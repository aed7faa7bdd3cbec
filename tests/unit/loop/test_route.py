"""Where a run's chain goes after failures, and what the run ends with (spec 04, 6; 05, 5 and 6)."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.unit.loop.stage import CountingGate, PlayingProvider, RememberingRecorder, answer, route_of

from lanewayd.loop.incomplete import INSTRUCTIONS, Conduct, Lack
from lanewayd.loop.turn import ModelTurn
from lanewayd.messages import (
    AssistantMessage,
    FailureClass,
    ModelFacts,
    Reasoning,
    RunError,
    StopReason,
    Text,
    ThinkingLevel,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from lanewayd.models.candidates import Candidate
from lanewayd.models.entering import PROBE_INTERVAL_S, ProbeThrottle
from lanewayd.models.interface import Cooling
from lanewayd.providers.interface import Done, Failed, ModelRequest, ReasoningDelta, StreamEvent

K = FailureClass
ASKED = ModelRequest("", "system", (UserMessage("hi"),))


def failed(kind: FailureClass, status: int = 500, *, text: str = "no", **more: object) -> Failed:
    error = RunError("PROVIDER_UNAVAILABLE", text, "acme", "m", status)
    return replace(Failed(error, AssistantMessage((), "acme", "m", StopReason.ERROR), finer=kind), **more)  # type: ignore[arg-type]


@dataclass
class PlayedProfiles:
    """Implements Profiles: the names of each provider; those in `cooling_down` cannot be used."""

    names: dict[str, list[str]]
    cooling_down: dict[str, Cooling] = field(default_factory=dict)
    refreshes: bool = False
    told: list[tuple[str, ...]] = field(default_factory=list)

    def count(self, provider: str) -> int:
        return len(self.names.get(provider, [""]))

    async def pick(
        self, provider: str, model: str, *, session_id: str, tried: Collection[str] = ()
    ) -> str | Cooling | None:
        assert session_id == "s"
        left = [name for name in self.names.get(provider, [""]) if name not in tried]
        usable = [name for name in left if name not in self.cooling_down]
        return usable[0] if usable else self.cooling_down[left[0]] if left else None

    def cooling(self, provider: str, model: str) -> Cooling | None:
        names = self.names.get(provider, [""])
        return self.cooling_down[names[0]] if all(name in self.cooling_down for name in names) else None

    async def refresh(self, provider: str, profile: str) -> bool:
        self.told.append(("refresh", provider, profile))
        return self.refreshes

    async def failed(
        self, provider: str, model: str, profile: str, kind: FailureClass, *, retry_after_s: float | None = None
    ) -> None:
        self.told.append(("failed", provider, model, profile, kind.value))

    async def succeeded(self, provider: str, profile: str) -> None:
        self.told.append(("succeeded", provider, profile))


class RouteStage:
    """A turn over a chain; each provider plays its list."""

    def __init__(
        self,
        turns: Mapping[str, Sequence[AssistantMessage | Failed | Sequence[StreamEvent]]],
        *chain: str | Candidate,
        profiles: PlayedProfiles | None = None,
        probes: ProbeThrottle | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.recorder = RememberingRecorder()
        self.providers = {name: PlayingProvider(*played) for name, played in turns.items()}
        self.profiles = profiles or PlayedProfiles({})
        candidates = [Candidate.of(each) if isinstance(each, str) else each for each in chain]
        self.route = route_of(candidates, self.providers, clock=self.clock, profiles=self.profiles, probes=probes)
        self.turn = ModelTurn(route=self.route, recorder=self.recorder, clock=self.clock, gate=CountingGate())

    async def call(self, conduct: Conduct | None = None, *, waits: Sequence[float] = ()) -> Done | Failed:
        """One call; the clock is moved by `waits`, one wait after the other."""
        calling = asyncio.ensure_future(self.turn.call(ASKED, conduct or Conduct()))
        for delay_s in waits:
            await self.clock.wait_for_sleepers(1)
            await self.clock.advance(delay_s)
        return await calling

    def used(self, provider: str = "a") -> list[tuple[str, str]]:
        """Model and credential of each request."""
        return [(request.model, request.profile) for request in self.providers[provider].requests]


async def test_the_next_model_answers_when_one_fails_and_it_is_told_who_takes_over() -> None:
    stage = RouteStage({"a": [failed(K.TIMEOUT, 503)], "b": [answer("hello")]}, "a/1", "b/2")
    outcome = await stage.call()
    assert isinstance(outcome, Done)
    assert (stage.used("a"), stage.used("b")) == ([("1", "")], [("2", "")])
    assert stage.recorder.of("takes over", "retry") == [("takes over", "b/2", "PROVIDER_UNAVAILABLE", 2)]


async def test_the_model_that_took_over_stays_for_the_run() -> None:
    stage = RouteStage({"a": [failed(K.TIMEOUT, 503)], "b": [answer(), answer()]}, "a/1", "b/2")
    await stage.call()
    await stage.call(Conduct(has_output=True))
    assert (len(stage.used("a")), len(stage.used("b"))) == (1, 2)


async def test_another_credential_is_used_and_health_hears_of_both() -> None:
    profiles = PlayedProfiles({"a": ["one", "two"]})
    stage = RouteStage({"a": [failed(K.BILLING, 402), answer()]}, "a/1", profiles=profiles)
    assert isinstance(await stage.call(), Done)
    assert stage.used() == [("1", "one"), ("1", "two")]
    assert profiles.told == [("failed", "a", "1", "one", "billing"), ("succeeded", "a", "two")]
    assert stage.recorder.of("retry") == [("retry", "PROVIDER_UNAVAILABLE", 2, 0.0)]


async def test_after_an_answer_a_credential_that_failed_before_may_be_used_again() -> None:
    profiles = PlayedProfiles({"a": ["one", "two"]})
    broke = failed(K.BILLING, 402)
    stage = RouteStage({"a": [broke, answer(), broke, answer()]}, "a/1", profiles=profiles)
    assert isinstance(await stage.call(), Done)
    assert isinstance(await stage.call(Conduct(has_output=True)), Done)
    assert [profile for _, profile in stage.used()] == ["one", "two", "two", "one"]


async def test_a_refused_key_is_read_anew_and_used_again_if_it_changed() -> None:
    profiles = PlayedProfiles({"a": ["one", "two"]}, refreshes=True)
    stage = RouteStage({"a": [failed(K.AUTH, 401), failed(K.AUTH, 401), answer()]}, "a/1", profiles=profiles)
    assert isinstance(await stage.call(), Done)
    assert stage.used() == [("1", "one"), ("1", "one"), ("1", "two")]
    assert [told[0] for told in profiles.told] == ["refresh", "failed", "succeeded"]


async def test_a_refused_level_is_replaced_and_another_credential_begins_with_the_one_asked_for() -> None:
    high = Candidate("a", "1", ModelFacts(can_think=True), ThinkingLevel.HIGH)
    refused = failed(K.FORMAT, 400, text="reasoning_effort 'high' is not supported; supported values: low, medium")
    profiles = PlayedProfiles({"a": ["one", "two"]})
    stage = RouteStage({"a": [refused, failed(K.BILLING, 402), answer()]}, high, profiles=profiles)
    assert isinstance(await stage.call(), Done)
    levels = [request.thinking for request in stage.providers["a"].requests]
    assert levels == [ThinkingLevel.HIGH, ThinkingLevel.LOW, ThinkingLevel.HIGH]


async def test_each_level_is_asked_for_once() -> None:
    high = Candidate("a", "1", ModelFacts(can_think=True), ThinkingLevel.HIGH)
    refused = failed(K.FORMAT, 400, text="reasoning_effort is not supported; supported values: low, high")
    stage = RouteStage({"a": [refused, refused]}, high)
    assert isinstance(await stage.call(), Failed)
    assert [request.thinking for request in stage.providers["a"].requests] == [ThinkingLevel.HIGH, ThinkingLevel.LOW]


async def test_a_chain_that_failed_whole_ends_with_all_that_was_tried() -> None:
    turns = {"a": [failed(K.TIMEOUT, 503)], "b": [failed(K.RATE_LIMIT, 429)], "c": [failed(K.AUTH, 401, text="last")]}
    profiles = PlayedProfiles({"b": ["k"]}, {"k": Cooling("k", K.RATE_LIMIT, 25.0)})
    outcome = await RouteStage(turns, "a/1", "b/2", "c/3", profiles=profiles).call()
    assert isinstance(outcome, Failed)
    assert (outcome.error.http_status, outcome.error.provider) == (401, "acme")
    assert outcome.error.message == (
        "last All models of the chain failed: a/1: timeout (PROVIDER_UNAVAILABLE, HTTP 503);"
        " b/2 with k: rate_limit (PROVIDER_UNAVAILABLE, HTTP 429); c/3: auth (PROVIDER_UNAVAILABLE, HTTP 401)."
        " A credential can be used again in 25 s."
    )


async def test_of_a_long_chain_the_last_failures_are_told() -> None:
    providers = [f"p{number}" for number in range(10)]
    turns = {name: [failed(K.TIMEOUT, 503)] for name in providers}
    outcome = await RouteStage(turns, *(f"{name}/m" for name in providers)).call()
    assert isinstance(outcome, Failed)
    told = [f"{name}/m: timeout (PROVIDER_UNAVAILABLE, HTTP 503)" for name in providers[2:]]
    assert f"All models of the chain failed: ... {'; '.join(told)}." in outcome.error.message


async def test_the_error_of_one_model_is_not_changed() -> None:
    outcome = await RouteStage({"a": [failed(K.AUTH, 401)]}, "a/1").call()
    assert isinstance(outcome, Failed)
    assert outcome.error == failed(K.AUTH, 401).error


async def test_a_model_whose_credentials_are_all_cooling_down_is_passed_over_without_a_call() -> None:
    profiles = PlayedProfiles({"a": ["k"]}, {"k": Cooling("k", K.AUTH, 25.0)})
    stage = RouteStage({"a": [], "b": [answer()]}, "a/1", "b/2", profiles=profiles)
    assert isinstance(await stage.call(), Done)
    assert stage.used("a") == []
    assert stage.recorder.of("takes over") == [("takes over", "b/2", "PROVIDER_AUTH", 1)]


async def test_without_any_usable_model_the_run_ends_before_a_call_and_says_when_it_may_work() -> None:
    profiles = PlayedProfiles({"a": ["k"]}, {"k": Cooling("k", K.AUTH, 25.0)})
    outcome = await RouteStage({"a": []}, "a/1", profiles=profiles).call()
    assert isinstance(outcome, Failed)
    assert outcome.error.reason == "PROVIDER_AUTH"
    assert "can be used again in 25 s" in outcome.error.message


async def test_a_transient_window_near_its_end_is_probed_once_in_a_run() -> None:
    profiles = PlayedProfiles({"a": ["k"]}, {"k": Cooling("k", K.OVERLOADED, 25.0)})
    busy = failed(K.OVERLOADED, 529)
    stage = RouteStage({"a": [busy], "b": [*[busy] * 5, answer()]}, "a/1", "b/2", profiles=profiles)
    # Long enough for another probe of the provider, by another run.
    assert isinstance(await stage.call(waits=[2.5, 5.0, 10.0, 20.0, 30.0]), Done)
    assert (stage.used("a"), len(stage.used("b"))) == ([("1", "k")], 6)


async def test_the_runs_of_a_process_probe_a_provider_every_thirty_seconds_at_most() -> None:
    profiles = PlayedProfiles({"a": ["k"]}, {"k": Cooling("k", K.OVERLOADED, 25.0)})
    probes, probed = ProbeThrottle(), []
    for waited_s in (0.0, PROBE_INTERVAL_S - 0.1, PROBE_INTERVAL_S):
        stage = RouteStage({"a": [answer()], "b": [answer()]}, "a/1", "b/2", profiles=profiles, probes=probes)
        await stage.clock.advance(waited_s)
        assert isinstance(await stage.call(), Done)
        probed.append(len(stage.used("a")))
    assert probed == [1, 0, 1]


async def test_health_hears_once_of_a_failure_although_no_other_credential_can_be_used() -> None:
    profiles = PlayedProfiles({"a": ["one", "two"]}, {"two": Cooling("two", K.AUTH, 25.0)})
    stage = RouteStage({"a": [failed(K.BILLING, 402)], "b": [answer()]}, "a/1", "b/2", profiles=profiles)
    assert isinstance(await stage.call(), Done)
    assert profiles.told == [("failed", "a", "1", "one", "billing"), ("succeeded", "b", "")]


async def test_siblings_of_an_unavailable_provider_come_last() -> None:
    profiles = PlayedProfiles({"a": ["k"]}, {"k": Cooling("k", K.RATE_LIMIT, 600.0)})
    stage = RouteStage({"a": [answer()], "b": [failed(K.TIMEOUT, 503)]}, "a/1", "a/2", "b/3", profiles=profiles)
    assert isinstance(await stage.call(), Done)
    assert (stage.used("b"), stage.used("a")) == ([("3", "")], [("2", "k")])


async def test_a_model_without_settings_is_passed_over_and_alone_ends_the_run_as_not_configured() -> None:
    stage = RouteStage({"b": [answer()]}, "a/1", "b/2")
    assert isinstance(await stage.call(), Done)
    outcome = await RouteStage({}, "a/1").call()
    assert isinstance(outcome, Failed)
    assert outcome.error.reason == "MODEL_NOT_CONFIGURED"


async def test_an_overloaded_chain_is_called_again_from_its_first_model() -> None:
    busy = failed(K.OVERLOADED, 529)
    stage = RouteStage({"a": [busy, busy, answer()], "b": [busy, busy]}, "a/1", "b/2")
    assert isinstance(await stage.call(waits=[2.5, 5.0]), Done)
    assert (len(stage.used("a")), len(stage.used("b"))) == (3, 2)
    assert [told[3] for told in stage.recorder.of("retry")] == [2.5, 5.0]
    # Who is first is told by the retry.
    assert [told[1:] for told in stage.recorder.of("takes over")] == [
        ("b/2", "PROVIDER_UNAVAILABLE", 2),
        ("b/2", "PROVIDER_UNAVAILABLE", 4),
    ]


async def test_an_overflow_leaves_credential_and_model_alone() -> None:
    profiles = PlayedProfiles({"a": ["one", "two"]})
    stage = RouteStage({"a": [failed(K.CONTEXT_OVERFLOW, 400)], "b": []}, "a/1", "b/2", profiles=profiles)
    assert isinstance(await stage.call(), Failed)
    assert (stage.used(), profiles.told) == ([("1", "one")], [])


def thought(stop: StopReason = StopReason.STOP) -> AssistantMessage:
    return AssistantMessage((Reasoning("hm"),), "acme", "m", stop, Usage(1, 1))


def nothing(stop: StopReason = StopReason.STOP) -> AssistantMessage:
    return AssistantMessage((), "acme", "m", stop, Usage(1, 1))


async def test_a_model_that_only_thinks_is_asked_twice_for_the_visible_answer() -> None:
    stage = RouteStage({"a": [[ReasoningDelta(0, "hm"), Done(thought())], thought(), thought()]}, "a/1")
    outcome = await stage.call()
    assert isinstance(outcome, Failed)
    said = [request.messages[-1] for request in stage.providers["a"].requests]
    nudged = UserMessage(f"hi\n\n{INSTRUCTIONS[Lack.REASONING_ONLY]}")
    assert said == [UserMessage("hi"), nudged, nudged]
    assert outcome.error.reason == "PROVIDER_BAD_RESPONSE"
    assert "No response could be generated" in outcome.error.message
    assert len(stage.recorder.of("retry")) == 2
    assert len(stage.recorder.of("failed")) == 3


async def test_an_empty_answer_is_asked_for_once_more() -> None:
    stage = RouteStage({"a": [nothing(), answer("hello")]}, "a/1")
    assert isinstance(await stage.call(), Done)
    assert stage.providers["a"].requests[1].messages == (UserMessage(f"hi\n\n{INSTRUCTIONS[Lack.EMPTY]}"),)
    assert isinstance(await RouteStage({"a": [nothing(), nothing()]}, "a/1").call(), Failed)


@pytest.mark.parametrize("lacking", [nothing(), thought()], ids=["empty", "reasoning only"])
async def test_after_side_effects_a_model_is_not_asked_again_and_the_caller_is_told_to_look(
    lacking: AssistantMessage,
) -> None:
    stage = RouteStage({"a": [lacking]}, "a/1")
    outcome = await stage.call(Conduct(is_replay_safe=False, has_output=True))
    assert isinstance(outcome, Failed)
    assert "look at what they did" in outcome.error.message


async def test_an_answer_that_is_missing_after_a_tool_names_the_tool() -> None:
    stage = RouteStage({"a": [nothing()]}, "a/1")
    request = replace(ASKED, messages=(UserMessage("hi"), ToolResultMessage("c", "exec", "done")))
    outcome = await stage.turn.call(request, Conduct(is_replay_safe=False, has_output=True))
    assert isinstance(outcome, Failed)
    assert outcome.error.tool_name == "exec"
    assert "The tool exec finished before, but no final answer was given." in outcome.error.message


async def test_an_answer_cut_before_its_first_word_is_a_success_after_the_retries() -> None:
    cut = thought(StopReason.LENGTH)
    assert isinstance(await RouteStage({"a": [nothing(StopReason.LENGTH)]}, "a/1").call(), Done)
    stage = RouteStage({"a": [cut, cut, cut]}, "a/1")
    assert isinstance(await stage.call(), Done)
    assert len(stage.used()) == 3


async def test_a_call_without_an_outcome_is_made_again_once() -> None:
    stage = RouteStage({"a": [[], answer()]}, "a/1")
    assert isinstance(await stage.call(), Done)
    assert isinstance(await RouteStage({"a": [[], []]}, "a/1").call(), Failed)


async def test_text_that_is_blank_is_no_answer() -> None:
    blank = AssistantMessage((Text(" \n"),), "acme", "m", StopReason.STOP)
    assert isinstance(await RouteStage({"a": [blank, blank]}, "a/1").call(), Failed)
