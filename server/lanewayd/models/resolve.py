"""Which model a run uses. Pure: values of the settings in, a choice or an error with advice out. Spec 04, section 2."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lanewayd.errors import ErrorCode, FieldError, LanewayError
from lanewayd.messages import LOCAL_PROVIDER, SCRIPTED_PROVIDER

DEFAULT_MODELS: Mapping[str, str] = {
    "openai": "gpt-5.2",
    "anthropic": "claude-sonnet-4-6",
    "gemini": "gemini-3.8-flash",
    "openrouter": "openai/gpt-5.2",
}
"""What is used without any setting, in this order: the first provider that has its key set."""


class ModelSource(StrEnum):
    """Who named the model. Stored with the run: it says whether others may take over."""

    REQUEST = "request"
    SESSION = "session"
    AGENT = "agent"
    DEFAULTS = "defaults"
    ENVIRONMENT = "environment"
    EMBEDDED = "embedded"

    @property
    def words(self) -> str:
        """For errors: what the model is named by."""
        return _SOURCE_WORDS.get(self, self.value)

    @property
    def is_override(self) -> bool:
        """A caller named it, so that the allow-list counts and nothing takes over."""
        return self in (ModelSource.REQUEST, ModelSource.SESSION)


_SOURCE_WORDS = {
    ModelSource.REQUEST: "the request",
    ModelSource.SESSION: "the session",
    ModelSource.AGENT: "the settings of the agent",
    ModelSource.DEFAULTS: "agents.defaults.model",
}


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
    """What each place names that may name a model, as people write it; empty = it names none."""

    request: str = ""
    session: str = ""
    agent: str = ""
    defaults: str = ""
    allow: tuple[str, ...] = ()
    """What request and session may name (R-4.9); empty = anything."""
    allow_key: str = ""
    """The setting that says so."""


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


@dataclass(frozen=True, slots=True)
class ModelNames:
    """What stands for a model besides `provider/model`."""

    aliases: Mapping[str, str] = field(default_factory=dict)
    """Alias in lower case -> `provider/model`."""
    listed: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Provider that can be used -> the models known of it, in lower case."""

    def full(self, named: str, source: ModelSource) -> str:
        """`provider/model` for what somebody named (R-4.6, R-4.7): an alias goes before the only provider that lists
        such a model. Raises like `resolve_model` for a name that is neither."""
        if "/" in named:
            return named
        alias = self.aliases.get(named.lower())
        if alias is not None:
            return alias
        owners = [provider for provider, models in self.listed.items() if named.lower() in models]
        if len(owners) == 1:
            return f"{owners[0]}/{named}"
        problem = f"the model {named!r} is not of the form provider/model and no alias"
        if owners:
            problem += f"; there is {' and '.join(f'{owner}/{named}' for owner in sorted(owners))}"
        raise _unknown(source, problem)


def is_allowed(reference: str, allow: Sequence[str], aliases: Mapping[str, str]) -> bool:
    """Whether an allow-list has `provider/model`: as itself, under an alias, or below `provider/*`. Empty = it has."""
    if not allow:
        return True
    wanted = reference.lower()
    for pattern in map(str.lower, allow):
        beginning = pattern.removesuffix("*")
        if (beginning != pattern and wanted.startswith(beginning)) or wanted == aliases.get(pattern, pattern).lower():
            return True
    return False


def chain(
    requested: str, source: ModelSource, *, own: Sequence[str] | None, defaults: Sequence[str], primary: str
) -> tuple[str, ...]:
    """The references of a run's models in the order in which they are called (R-4.67, R-4.68, and "strict" in 04, 2.1).

    `own`: the fallbacks that the agent's settings give, None if they give none; `defaults`: those of all agents;
    `primary`: the model of all agents, so that a chain can settle back. No model comes twice.
    """
    if source.is_override or (own is None and source is ModelSource.AGENT):
        return (requested,)
    references = (requested, *own) if own is not None else (requested, *defaults, primary)
    unique: dict[str, str] = {}
    for reference in filter(None, references):
        unique.setdefault(reference.lower(), reference)
    return tuple(unique.values())


def seeing_first(references: list[str], image_model: str, *, sees: Callable[[str], bool]) -> list[str]:
    """The chain of a run with images: `image_model`, a full reference, comes before a first model that cannot see
    (R-4.16)."""
    if sees(references[0]):
        return references
    return [image_model, *(each for each in references if each.lower() != image_model.lower())]


def resolve_model(
    wishes: ModelWishes,
    providers: Mapping[str, ProviderFacts],
    embedded: Callable[[], EmbeddedModel],
    names: ModelNames = ModelNames(),
) -> ModelChoice:
    """The model of the highest place that names one: request, session, agent, defaults; else DEFAULT_MODELS, else the
    embedded one. `embedded` is called only where that one is meant: looking for it may take a while.

    A place that names one is final: what it names is used or refused, never replaced. Raises FieldError MODEL_UNKNOWN
    for a reference of the request that is malformed, names no provider or is not allowed, LanewayError
    MODEL_NOT_CONFIGURED, whose text says what to set, in all other cases.
    """
    for source, reference in (
        (ModelSource.REQUEST, wishes.request),
        (ModelSource.SESSION, wishes.session),
        (ModelSource.AGENT, wishes.agent),
        (ModelSource.DEFAULTS, wishes.defaults),
    ):
        if reference:
            choice = _named_model(names.full(reference, source), source, providers, embedded)
            if source.is_override:
                _check_allowed(choice, wishes, names)
            return choice
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
            f"the model {reference!r} (named by {source.words}) has no key: set {facts.key_source} for the server, or "
            f"`models.providers.{provider}.api_key_env` or `api_key_file`",
        )
    return ModelChoice(provider, model, source)


def _check_allowed(choice: ModelChoice, wishes: ModelWishes, names: ModelNames) -> None:
    if not is_allowed(choice.reference, wishes.allow, names.aliases):
        problem = (
            f"the model {choice.reference!r} is not allowed here: `{wishes.allow_key}` has {', '.join(wishes.allow)}; "
            "name one of those, or add it there"
        )
        raise _unknown(choice.source, problem)


def _embedded_model(reference: str, source: ModelSource, embedded: EmbeddedModel) -> ModelChoice:
    if reference.partition("/")[2].lower() != embedded.model:
        raise _unknown(source, f"the model {reference!r} is not here; of this provider there is {embedded.reference}")
    if embedded.problem:
        raise LanewayError(
            ErrorCode.MODEL_NOT_CONFIGURED,
            f"the model {reference!r} (named by {source.words}) cannot be used: {embedded.problem}",
        )
    return ModelChoice(LOCAL_PROVIDER, embedded.model, source)


def _is_script_name(name: str) -> bool:
    return name.isprintable() and not name.startswith(".") and not any(mark in name for mark in "/\\:")


def _unknown(source: ModelSource, problem: str) -> LanewayError:
    """Only what the request names is the caller's fault; the rest is a matter of the settings."""
    if source is ModelSource.REQUEST:
        return FieldError(ErrorCode.MODEL_UNKNOWN, "model", problem)
    return LanewayError(ErrorCode.MODEL_NOT_CONFIGURED, f"{problem}; it is named by {source.words}")
