"""Which model a run uses. Pure: values of the settings in, a choice or an error with advice out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lanewayd.errors import ErrorCode, FieldError, LanewayError

SCRIPTED_PROVIDER = "scripted"
"""Plays scripts from home; it always exists and needs no key. Its models are names of scripts, not checked here."""
LOCAL_PROVIDER = "local"
"""The embedded model, in a process of the service's own; it always has this name and needs no key."""

DEFAULT_MODELS: Mapping[str, str] = {
    "openai": "gpt-5.2",
    "anthropic": "claude-sonnet-4-6",
    "gemini": "gemini-3.8-flash",
    "openrouter": "openai/gpt-5.2",
}
"""What is used without any setting, in this order: the first provider that has its key set."""


class ModelSource(StrEnum):
    """Who named the model; the value says it in errors."""

    REQUEST = "the request"
    SESSION = "the session"
    AGENT = "the settings of the agent"
    DEFAULTS = "agents.defaults.model"
    ENVIRONMENT = "the environment"
    EMBEDDED = "being the only one there is"


@dataclass(frozen=True, slots=True)
class ProviderFacts:
    """What resolving must know of a configured provider."""

    api: str
    has_key: bool
    """The key was found, or none is needed."""
    key_source: str = ""
    """Where the key is looked for, in words: `the environment variable X`."""


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """The one model of the provider `local`. `problem`: why it cannot be used and what to do; empty if it can."""

    model: str
    problem: str = ""

    @property
    def reference(self) -> str:
        """As it stands in `Run.model`."""
        return f"{LOCAL_PROVIDER}/{self.model}"


@dataclass(frozen=True, slots=True)
class ModelWishes:
    """A reference `provider/model` from each place that may name one; empty = it does not."""

    request: str = ""
    session: str = ""
    agent: str = ""
    defaults: str = ""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that can be called. `model` is the provider's own name of it."""

    provider: str
    model: str
    source: ModelSource

    @property
    def reference(self) -> str:
        """As it stands in `Run.model` and may stand in a request."""
        return f"{self.provider}/{self.model}"


def resolve_model(
    wishes: ModelWishes, providers: Mapping[str, ProviderFacts], embedded: Callable[[], EmbeddedModel]
) -> ModelChoice:
    """The model of the highest place that names one: request, session, agent, defaults; else DEFAULT_MODELS, else the
    embedded one. `embedded` is called only where that one is meant: looking for it may take a while.

    A place that names one is final: what it names is used or refused, never replaced. Raises FieldError MODEL_UNKNOWN
    for a reference of the request that is malformed or names no provider, LanewayError MODEL_NOT_CONFIGURED, whose text
    says what to set, in all other cases.
    """
    for source, reference in (
        (ModelSource.REQUEST, wishes.request),
        (ModelSource.SESSION, wishes.session),
        (ModelSource.AGENT, wishes.agent),
        (ModelSource.DEFAULTS, wishes.defaults),
    ):
        if reference:
            return _named_model(reference, source, providers, embedded)
    for provider, model in DEFAULT_MODELS.items():
        facts = providers.get(provider)
        if facts is not None and facts.has_key:
            return ModelChoice(provider, model, ModelSource.ENVIRONMENT)
    last = embedded()
    if not last.problem:
        return ModelChoice(LOCAL_PROVIDER, last.model, ModelSource.EMBEDDED)
    keys = " or ".join(providers[name].key_source for name in DEFAULT_MODELS if name in providers) or "the key of one"
    raise LanewayError(
        ErrorCode.MODEL_NOT_CONFIGURED,
        f"no model is configured: set {keys} for the server, or `agents.defaults.model` to provider/model with "
        f"[models.providers.<provider>] in laneway.toml; {last.problem}",
    )


def _named_model(
    reference: str, source: ModelSource, providers: Mapping[str, ProviderFacts], embedded: Callable[[], EmbeddedModel]
) -> ModelChoice:
    provider, slash, model = reference.partition("/")
    provider = provider.lower()
    if not slash or not provider or not model or model != model.strip():
        raise _unknown(source, f"the model {reference!r} is not of the form provider/model")
    if provider == SCRIPTED_PROVIDER:
        if not _is_script_name(model):
            raise _unknown(source, f"{model!r} cannot be the name of a script: no separators, no dot in front")
        return ModelChoice(provider, model, source)
    if provider == LOCAL_PROVIDER:
        return _embedded_model(reference, source, embedded())
    facts = providers.get(provider)
    if facts is None:
        known = ", ".join(sorted([*providers, SCRIPTED_PROVIDER, LOCAL_PROVIDER]))
        raise _unknown(source, f"the model {reference!r} has an unknown provider; known: {known}")
    if not facts.has_key:
        raise LanewayError(
            ErrorCode.MODEL_NOT_CONFIGURED,
            f"the model {reference!r} (named by {source.value}) has no key: set {facts.key_source} for the server, or "
            f"`models.providers.{provider}.api_key_env` or `api_key_file`",
        )
    return ModelChoice(provider, model, source)


def _embedded_model(reference: str, source: ModelSource, embedded: EmbeddedModel) -> ModelChoice:
    if reference.partition("/")[2].lower() != embedded.model:
        raise _unknown(source, f"the model {reference!r} is not here; of this provider there is {embedded.reference}")
    if embedded.problem:
        raise LanewayError(
            ErrorCode.MODEL_NOT_CONFIGURED,
            f"the model {reference!r} (named by {source.value}) cannot be used: {embedded.problem}",
        )
    return ModelChoice(LOCAL_PROVIDER, embedded.model, source)


def _is_script_name(name: str) -> bool:
    return name.isprintable() and not name.startswith(".") and not any(mark in name for mark in "/\\:")


def _unknown(source: ModelSource, problem: str) -> LanewayError:
    """Only what the request names is the caller's fault; the rest is a matter of the settings."""
    if source is ModelSource.REQUEST:
        return FieldError(ErrorCode.MODEL_UNKNOWN, "model", problem)
    return LanewayError(ErrorCode.MODEL_NOT_CONFIGURED, f"{problem}; it is named by {source.value}")
