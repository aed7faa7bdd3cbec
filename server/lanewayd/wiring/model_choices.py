"""Which models an agent's runs use: what the settings say, put before the rules of models/."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.messages import LOCAL_PROVIDER, SCRIPTED_PROVIDER, Prices, ThinkingLevel
from lanewayd.models.candidates import Candidate
from lanewayd.models.params import ModelParams, params_of
from lanewayd.models.resolve import (
    ModelChoice,
    ModelNames,
    ModelSource,
    ModelWishes,
    ProviderFacts,
    chain,
    resolve_model,
    seeing_first,
)
from lanewayd.models.thinking import check_level, level_for
from lanewayd.models.windows import Room
from lanewayd.records import RunRequest
from lanewayd.runs.admin import AgentListing, ModelListing
from lanewayd.settings.models import AgentSettings
from lanewayd.settings.schema import Settings
from lanewayd.wiring.local_model import LocalModel
from lanewayd.wiring.model_facts import FREE, KnownModels

logger = logging.getLogger(__name__)


class ModelChoices:
    """Answers from the settings of one start of the service; keeps nothing."""

    def __init__(self, settings: Settings, providers: Mapping[str, ProviderFacts], local: LocalModel) -> None:
        self._settings = settings
        self._providers = providers
        self._local = local
        self._known = KnownModels(settings.models.catalog, local_context_tokens=lambda: local.context_tokens)
        self._names = ModelNames(
            aliases={alias.lower(): model for alias, model in settings.models.aliases.items()},
            listed={
                name: {reference.partition("/")[2].lower() for reference in self._known.of(name)}
                for name, facts in providers.items()
                if facts.has_key
            },
        )

    def choose(self, agent_id: str, requested: str = "", *, session: str = "") -> ModelChoice:
        """The model of a run. Raises MODEL_UNKNOWN for what the request names, MODEL_NOT_CONFIGURED for all else."""
        own = f"agents.list.{agent_id}.model" in self._settings.sources
        agent, defaults = self._agent(agent_id), self._settings.agents.defaults
        own_policy = f"agents.list.{agent_id}.model_policy.allow"
        wishes = ModelWishes(
            request=requested,
            session=session,
            agent=agent.model or "" if own else "",
            defaults=defaults.model or "",
            allow=agent.model_policy.allow,
            allow_key=own_policy if own_policy in self._settings.sources else "agents.defaults.model_policy.allow",
        )
        choice = resolve_model(wishes, self._providers, lambda: self._local.facts, self._names)
        self._check_room(choice, agent)
        return choice

    def check_thinking(self, agent_id: str, model: str, level: ThinkingLevel) -> None:
        """Raises FIELD_INVALID for a level that `model`, a full reference, is known not to have."""
        check_level(level, self._known.facts(model, agent_cap=self._agent(agent_id).context_tokens), model=model)

    def candidates(self, request: RunRequest) -> tuple[Candidate, ...]:
        """The models of a run in the order in which they are called. Fallbacks that cannot be called are left out."""
        agent, is_configured = self._agent(request.agent_id), request.agent_id in self._settings.agents.list
        usable = [request.model]
        for reference in chain(
            request.model,
            ModelSource(request.model_source or ModelSource.REQUEST),
            own=agent.fallbacks if is_configured else None,
            defaults=self._settings.agents.defaults.fallbacks or (),
            primary=self._settings.agents.defaults.model or "",
        )[1:]:
            full = self._usable(reference, agent)
            if full and full.lower() not in (each.lower() for each in usable):
                usable.append(full)
        wish = ThinkingLevel.of(request.thinking) or ThinkingLevel.of(agent.thinking or "")
        if agent.image_model and any(attachment.is_image for attachment in request.attachments):
            image_model = self._usable(agent.image_model, agent)
            if image_model:
                usable = seeing_first(usable, image_model, sees=lambda model: self._known.facts(model).accepts_images)
        return tuple(self._candidate(reference, agent, wish) for reference in usable)

    def _candidate(self, reference: str, agent: AgentSettings, wish: ThinkingLevel | None) -> Candidate:
        provider, _, model = reference.partition("/")
        facts = self._known.facts(reference, agent_cap=agent.context_tokens)
        if self._known.window(reference, agent_cap=agent.context_tokens).room is Room.SMALL:
            logger.warning(
                "little room in the context window", extra={"model": reference, "context_window": facts.context_window}
            )
        if facts.prices == Prices() and provider in self._providers and self._providers[provider].api == "ollama":
            facts = replace(facts, prices=FREE)  # it runs on one's own machines
        params = self._params(reference, agent)
        return Candidate(provider, model, facts, level_for(wish, facts), agent.cache_retention, params)

    def _params(self, reference: str, agent: AgentSettings) -> ModelParams:
        defaults = self._settings.agents.defaults
        own = {} if agent is defaults else agent.params
        return params_of(defaults.params, self._known.params(reference), own)

    def _usable(self, reference: str, agent: AgentSettings) -> str:
        """`provider/model` of what the settings name, empty if it cannot be called."""
        try:
            choice = resolve_model(
                ModelWishes(agent=reference), self._providers, lambda: self._local.facts, self._names
            )
            self._check_room(choice, agent)
        except LanewayError as error:
            logger.warning("a fallback cannot be used", extra={"model": reference, "reason": error.code.value})
            return ""
        return choice.reference

    def _check_room(self, choice: ModelChoice, agent: AgentSettings) -> None:
        window = self._known.window(choice.reference, agent_cap=agent.context_tokens)
        if window.room is Room.TOO_LITTLE:
            raise LanewayError(
                ErrorCode.MODEL_NOT_CONFIGURED,
                f"the context window of {choice.reference!r} is too small to work in: {window.used:,} tokens are used "
                f"of {window.native:,}, at least {window.least:,} are needed; raise `context_tokens` of the agent or "
                f'of [models.catalog."{choice.reference}"], or choose another model',
            )

    def _agent(self, agent_id: str) -> AgentSettings:
        return self._settings.agents.list.get(agent_id, self._settings.agents.defaults)

    # --- listings ----------------------------------------------------------------------------------------------------

    def agents(self, tools: tuple[str, ...]) -> list[AgentListing]:
        """The agents for ListAgents."""
        return [AgentListing(name, self._model_or_none(name), tools) for name in self._settings.agents.list]

    def models(self) -> list[ModelListing]:
        """For ListModels: what is known of the providers that can be used, and what the settings name; any other model
        of a provider works too, which is what `provider/*` says."""
        services = self._settings.models.providers
        listings = {
            f"{name}/*": ModelListing(f"{name}/*", service.api, 0, self._providers[name].has_key)
            for name, service in services.items()
        }
        embedded = self._local.facts
        is_there = not embedded.problem
        listings[embedded.reference] = ModelListing(
            embedded.reference, "openai_chat", self._local.context_tokens, is_there
        )
        named = [self._model_or_none(name) for name in self._settings.agents.list]
        named += [*self._settings.models.aliases.values(), *self._settings.models.catalog]
        named += [model for name in services if self._providers[name].has_key for model in self._known.of(name)]
        for model in filter(None, named):
            provider = model.partition("/")[0].lower()
            if provider != LOCAL_PROVIDER:
                is_usable = provider == SCRIPTED_PROVIDER or self._providers[provider].has_key
                listing = ModelListing(model, self._api_of(provider), self._listed_window(model), is_usable)
                listings.setdefault(model.lower(), listing)
        return list(listings.values())

    def _listed_window(self, model: str) -> int:
        """0 = nobody knows it."""
        facts = self._known.facts(model)
        return facts.context_window if facts.is_known else 0

    def _model_or_none(self, agent_id: str) -> str:
        try:
            return self.choose(agent_id).reference
        except LanewayError:
            return ""

    def _api_of(self, provider: str) -> str:
        return SCRIPTED_PROVIDER if provider == SCRIPTED_PROVIDER else self._settings.models.providers[provider].api
