"""What is said of models, services and servers: facts in, words out."""

from dataclasses import replace

import pytest

from lanewayd.doctor.findings import Finding, Level
from lanewayd.doctor.models import (
    AgentModel,
    EmbeddedModel,
    Service,
    ServiceAnswer,
    judge_agents,
    judge_embedded,
    judge_missing_key,
    judge_service,
)
from lanewayd.doctor.server import Lane, ServerReport, judge_server
from lanewayd.errors import ErrorCode

READY = EmbeddedModel("local/small", is_own_choice=True)
DAMAGED = EmbeddedModel("local/small", is_own_choice=True, problem="the file is damaged: pip install x")


def service(*, models: tuple[str, ...] = (), is_named: bool = False, key_source: str = "the file k") -> Service:
    return Service("acme", "http://h/v1", key_source, models, is_named)


def only(findings: list[Finding]) -> Finding:
    [finding] = findings
    return finding


def test_agents_with_the_same_outcome_share_a_line() -> None:
    agents = [AgentModel("a", "acme/m"), AgentModel("b", "acme/m"), AgentModel("c", "acme/n")]
    texts = [finding.text for finding in judge_agents(agents, READY, embedded_provider="local")]
    assert texts == ["agents a, b: acme/m", "agent c: acme/n"]


def test_without_any_model_the_advice_is_how_to_get_one() -> None:
    agents = [AgentModel("main", problem="no model is configured: set X")]
    finding = only(judge_agents(agents, DAMAGED, embedded_provider="local"))
    assert (finding.level, finding.text) == (Level.FAIL, "agent main: no model is configured")
    assert finding.advice.startswith("Set X. To use a real model, ")
    assert "OPENAI_API_KEY" in finding.advice
    assert "Ollama" in finding.advice


def test_an_agent_with_the_embedded_model_fails_when_that_is_damaged() -> None:
    agents = [AgentModel("main", "local/small")]
    assert only(judge_agents(agents, DAMAGED, embedded_provider="local")).level is Level.FAIL
    finding = judge_embedded(DAMAGED, is_used=True)
    assert (finding.level, finding.advice) == (Level.FAIL, DAMAGED.problem)
    assert judge_embedded(DAMAGED, is_used=False).level is Level.OK


def test_the_embedded_model_is_not_praised() -> None:
    used, unused = judge_embedded(READY, is_used=True), judge_embedded(READY, is_used=False)
    assert (used.level, unused.level) == (Level.WARN, Level.OK)
    for words in ("135 million", "mistakes in simple facts", "cannot choose tools"):
        assert words in used.text
    assert "To use a real model" in used.advice
    other = judge_embedded(EmbeddedModel("local/own", is_own_choice=False), is_used=True)
    assert (other.level, "135" in other.text) == (Level.OK, False)


@pytest.mark.parametrize(
    ("reason", "level", "words"),
    [
        (ErrorCode.PROVIDER_AUTH, Level.FAIL, "wrong key: the service refused the one from the file k (HTTP 418)"),
        (ErrorCode.PROVIDER_BILLING, Level.FAIL, "what it is (HTTP 418)"),
        (ErrorCode.PROVIDER_UNREACHABLE, Level.FAIL, "what it is"),
        (ErrorCode.PROVIDER_STALLED, Level.FAIL, "what it is"),
        (ErrorCode.PROVIDER_BAD_RESPONSE, Level.FAIL, "what it is"),
        (ErrorCode.PROVIDER_MODEL_NOT_FOUND, Level.WARN, "neither key nor model could be checked"),
        (ErrorCode.PROVIDER_RATE_LIMITED, Level.WARN, "what it is"),
        (ErrorCode.PROVIDER_UNAVAILABLE, Level.WARN, "what it is"),
    ],
)
def test_what_a_service_answers_is_a_finding_with_advice(reason: ErrorCode, level: Level, words: str) -> None:
    answer = ServiceAnswer(reason, "what it is", "its words", 418)
    finding = only(judge_service(service(is_named=True), answer))
    assert finding.level is level
    assert words in finding.text
    assert finding.text.endswith("; it said: its words")
    assert finding.advice
    assert only(judge_service(service(), answer)).level is Level.WARN, "nobody uses it"


def test_of_several_keys_the_refused_and_the_missing_one_have_their_profile_named() -> None:
    asked = replace(service(models=("m",)), profile="work")
    refused = only(judge_service(asked, ServiceAnswer(ErrorCode.PROVIDER_AUTH, "no", http_status=401)))
    assert refused.text == (
        "acme, profile work (http://h/v1): wrong key: the service refused the one from the file k (HTTP 401)"
    )
    missing = judge_missing_key(asked)
    assert missing.text.startswith("acme, profile work has no key: the file k")
    assert "take the profile out" in missing.advice
    assert "take the provider out" in judge_missing_key(service()).advice


def test_a_service_that_wants_a_key_where_none_is_configured_is_told_apart() -> None:
    finding = only(judge_service(service(is_named=True, key_source=""), ServiceAnswer(ErrorCode.PROVIDER_AUTH)))
    assert "asks for a key and none is configured" in finding.text
    assert "models.providers.acme.api_key_env" in finding.advice


def test_a_model_that_the_service_does_not_list_is_a_warning() -> None:
    listed = ServiceAnswer(None, models=frozenset({"m", "n"}))
    finding = only(judge_service(service(models=("m", "x")), listed))
    assert finding.level is Level.WARN
    assert "does not list x" in finding.text
    assert "m, n" in finding.advice
    for models in (frozenset({"m", "x"}), frozenset[str](), None):
        assert only(judge_service(service(models=("m", "x")), ServiceAnswer(None, models=models))).level is Level.OK


def report(**facts: object) -> ServerReport:
    return ServerReport("unix:/s", **{"version": "1", "store_path": "/h/laneway.db", **facts})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "level", "words"),
    [
        ({}, Level.OK, "version 1 serves on unix:/s, store /h/laneway.db"),
        ({"problem": "nobody listens there"}, Level.FAIL, "no server answers on unix:/s: nobody listens there"),
        ({"is_draining": True, "is_ready": False}, Level.WARN, "is leaving"),
        ({"is_ready": False}, Level.FAIL, "cannot write its store /h/laneway.db"),
        ({"lanes": [Lane("cron", 0, 0, 2)]}, Level.WARN, "2 runs wait in the lane cron, which is suspended"),
        ({"lanes": [Lane("main", 8, 8, 3)]}, Level.WARN, "the lane main is full: 8 runs go on, 3 wait"),
        ({"lanes": [Lane("main", 8, 8, 0), Lane("cron", 8, 0, 0)]}, Level.OK, "serves"),
        ({"commit_ms": 900.0}, Level.WARN, "commits take 900 ms"),
        ({"version": "0"}, Level.WARN, "is version 0, this command is 1"),
    ],
)
def test_a_server_is_judged_by_what_it_says(facts: dict[str, object], level: Level, words: str) -> None:
    finding = only(judge_server(report(**facts), own_version="1"))
    assert finding.level is level
    assert words in finding.text
    assert bool(finding.advice) is (level is not Level.OK)
