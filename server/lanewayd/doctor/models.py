"""What there is to say about models and the services that have them. Pure: facts in, findings out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lanewayd.doctor.findings import Finding, Level
from lanewayd.errors import ErrorCode
from lanewayd.messages import SCRIPTED_PROVIDER

REAL_MODEL_ADVICE = (
    "To use a real model, start the server with OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or "
    "OPENROUTER_API_KEY set; or name another one in laneway.toml, for example of Ollama on this "
    'machine: [agents.defaults] model = "ollama/MODEL".'
)


@dataclass(frozen=True, slots=True)
class AgentModel:
    """The model that an agent would use: `reference` is provider/model, or `problem` says why there is none."""

    agent: str
    reference: str = ""
    problem: str = ""
    is_named: bool = False
    """The settings name the model, so that somebody means this one."""


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """The model of the installation. `problem` says what is missing and how to get it."""

    name: str
    is_own_choice: bool
    """The small one that comes with this project, whose limits are known."""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """A configured model service."""

    name: str
    base_url: str
    key_source: str
    """Where its key is looked for, in words; empty if it needs none."""
    models: tuple[str, ...]
    """Those that agents use of it."""
    is_named: bool
    """The settings name it, so that somebody means to use it."""
    profile: str = ""
    """Which of its keys is looked at; "" = it has one or none."""

    @property
    def title(self) -> str:
        """The service, and of several keys the one that is meant."""
        return f"{self.name}, profile {self.profile}" if self.profile else self.name


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """What it said to a request for its models. `reason` None: it answered as it should."""

    reason: ErrorCode | None
    what: str = ""
    said: str = ""
    http_status: int = 0
    models: frozenset[str] | None = None
    """None: it does not list them."""


def judge_agents(agents: Sequence[AgentModel], embedded: EmbeddedModel, *, embedded_provider: str) -> list[Finding]:
    """Whether each agent has a model."""
    findings: list[Finding] = []
    by_outcome: dict[AgentModel, list[str]] = {}
    for each in agents:
        by_outcome.setdefault(replace(each, agent=""), []).append(each.agent)
    for outcome, names in by_outcome.items():
        reference = outcome.reference
        who = f"agent{'s' if len(names) > 1 else ''} {', '.join(names)}"
        if outcome.problem:
            what, _, advice = outcome.problem.partition(": ")
            advice = _sentence(advice or what) + ("" if outcome.is_named else f" {REAL_MODEL_ADVICE}")
            findings.append(Finding("model", Level.FAIL, f"{who}: {what}", advice))
        elif reference.partition("/")[0] == SCRIPTED_PROVIDER:
            text = f"{who}: {reference} plays a script and understands nothing"
            findings.append(Finding("model", Level.WARN, text, REAL_MODEL_ADVICE))
        elif reference.partition("/")[0] == embedded_provider and embedded.problem:
            findings.append(Finding("model", Level.FAIL, f"{who}: {reference} cannot be used", embedded.problem))
        else:
            findings.append(Finding("model", Level.OK, f"{who}: {reference}"))
    return findings


def judge_embedded(embedded: EmbeddedModel, *, is_used: bool) -> Finding:
    """The embedded model, without illusions."""
    if embedded.problem:
        level = Level.FAIL if is_used else Level.OK
        text = "not usable" if is_used else "not usable, and no agent uses it"
        return Finding("embedded", level, f"{embedded.name}: {text}", embedded.problem)
    if not embedded.is_own_choice:
        return Finding("embedded", Level.OK, f"{embedded.name}: a GGUF file that the settings name")
    text = (
        f"{embedded.name} is ready. It has 135 million parameters, about a thousandth of a large model: it holds a "
        "small conversation in English and shows that everything works. It makes mistakes in simple facts and sums, "
        "loses longer instructions, and cannot choose tools by itself."
    )
    # Used without being asked for, it would disappoint; the advice is for everybody who has nothing else.
    return Finding("embedded", Level.WARN if is_used else Level.OK, text, REAL_MODEL_ADVICE if is_used else "")


def judge_service(service: Service, answer: ServiceAnswer) -> list[Finding]:
    """Whether the service can be reached, takes the key and has the models."""
    who = f"{service.title} ({service.base_url})"
    is_needed = bool(service.models) or service.is_named
    failure = Level.FAIL if is_needed else Level.WARN
    status = f" (HTTP {answer.http_status})" if answer.http_status else ""
    if answer.reason is None:
        return [_listed(service, who, answer.models)]
    text, advice = f"{who}: {answer.what}{status}", _ADVICE.get(answer.reason, _OTHER_ADVICE)
    level = failure if answer.reason in _FAILURES else Level.WARN
    if answer.reason is ErrorCode.PROVIDER_AUTH:
        if service.key_source:
            text = f"{who}: wrong key: the service refused the one from {service.key_source}{status}"
        else:
            text = f"{who}: the service asks for a key and none is configured{status}"
        advice = _key_advice(service)
    elif answer.reason is ErrorCode.PROVIDER_MODEL_NOT_FOUND:
        text = f"{who} answers, but has no list of models{status}: neither key nor model could be checked"
    if answer.said:
        text += f"; it said: {answer.said}"
    return [Finding("service", level, text, advice)]


_FAILURES = frozenset(
    {
        ErrorCode.PROVIDER_AUTH,
        ErrorCode.PROVIDER_UNREACHABLE,
        ErrorCode.PROVIDER_BILLING,
        ErrorCode.PROVIDER_BAD_RESPONSE,
        ErrorCode.PROVIDER_STALLED,
    }
)
_OTHER_ADVICE = "Try again later; runs that meet this are tried again or fail with the same words."
_ADVICE: Mapping[ErrorCode, str] = {
    ErrorCode.PROVIDER_UNREACHABLE: "Is the URL right (`base_url`), is the service running, does a firewall lie "
    "between? Proxies that the environment names are not used.",
    ErrorCode.PROVIDER_BILLING: "Top up the account, or use the key of another one.",
    ErrorCode.PROVIDER_BAD_RESPONSE: "Is `base_url` the URL of an API, and `api` its language? For openai_chat it is "
    "what stands before /chat/completions, usually it ends with /v1.",
    ErrorCode.PROVIDER_STALLED: "The service accepts connections and says nothing: look at its log, start it again.",
    ErrorCode.PROVIDER_MODEL_NOT_FOUND: "If runs fail too: is `base_url` right? For openai_chat it is what stands "
    "before /chat/completions, usually it ends with /v1. "
    "Some services have no list; then a run is the only test: laneway agent hello",
}


def judge_missing_key(service: Service) -> Finding:
    """The settings name a service that can be asked nothing."""
    text = f"{service.title} has no key: {service.key_source} is not set"
    what = "the profile" if service.profile else "the provider"
    return Finding("service", Level.WARN, text, f"Set it for the server, or take {what} out of the settings.")


def _key_advice(service: Service) -> str:
    if not service.key_source:
        return f"Set `models.providers.{service.name}.api_key_env` to the name of the variable that has the key."
    return (
        f"Put a valid key into {service.key_source}: of this service, not expired, nothing around it. A server reads "
        "variables when it is started, files at each call."
    )


def _listed(service: Service, who: str, models: frozenset[str] | None) -> Finding:
    key = ", the key is accepted" if service.key_source else ""
    missing = [model for model in service.models if models and model not in models]
    if missing:
        some = ", ".join(sorted(models or ())[:5])
        text = f"{who} answers{key}, but does not list {', '.join(missing)}"
        return Finding("service", Level.WARN, text, f"Check the name of the model. It lists, among others: {some}")
    return Finding("service", Level.OK, f"{who} answers{key}")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
