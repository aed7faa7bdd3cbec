"""The configured model services, and which model an agent uses: implements runs.acceptance.AgentCatalog."""

import asyncio
from collections.abc import Mapping
from functools import partial

from lanewayd.clock import Clock
from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.messages import LOCAL_PROVIDER, SCRIPTED_PROVIDER, ThinkingLevel
from lanewayd.models.candidates import Candidate
from lanewayd.models.profiles import CredentialProfiles, CredentialRecords
from lanewayd.models.resolve import ModelChoice, ProviderFacts
from lanewayd.providers.call_ids import random_call_id
from lanewayd.providers.http_provider import HttpProvider, HttpService, make_transport
from lanewayd.providers.interface import Provider
from lanewayd.providers.scripted import ScriptedProvider
from lanewayd.records import RunRequest
from lanewayd.runs.admin import AgentListing, ModelListing
from lanewayd.settings.models import AgentSettings, ProviderSettings
from lanewayd.settings.schema import Settings
from lanewayd.wiring.dialects import make_dialect
from lanewayd.wiring.local_model import LocalModel
from lanewayd.wiring.model_choices import ModelChoices
from lanewayd.wiring.provider_keys import ProviderKeys


class ModelServices:
    """Owner of the providers: each is made when it is first used, and closed with the service."""

    def __init__(self, settings: Settings, *, environ: Mapping[str, str], clock: Clock) -> None:
        """Reads the keys. Raises StartupError for one that cannot be used."""
        self._settings = settings
        self._clock = clock
        self.keys = ProviderKeys(settings, environ)
        self.profiles = CredentialProfiles(self.keys.groups, clock=clock, credentials=self.keys)
        services = settings.models.providers
        self._facts = {name: self._facts_of(name, service) for name, service in services.items()}
        self._local = LocalModel(settings.models, environ=environ, clock=clock)
        self._choices = ModelChoices(settings, self._facts, self._local)
        self._owner = ""
        self._providers: dict[str, Provider] = {}

    def secrets(self) -> tuple[str, ...]:
        """Values that must be shown nowhere, as far as they are known by now."""
        return (self._local.api_key, *self.keys.secrets)

    async def begin(self, owner: str, records: CredentialRecords) -> None:
        """Before the first run: the mark of this start, for the process of the embedded model (D-2), and what earlier
        starts knew of the credentials."""
        self._owner = owner
        await self.profiles.open(records)

    def provider(self, name: str) -> Provider:
        """The provider of a run's model. Raises MODEL_NOT_CONFIGURED when the settings have it no more."""
        provider = self._providers.get(name)
        if provider is None:
            provider = self._providers[name] = self._make(name)
        return provider

    def candidates(self, request: RunRequest) -> tuple[Candidate, ...]:
        """The models of a run in the order in which they are called."""
        return self._choices.candidates(request)

    async def close(self) -> None:
        """Give all connections back."""
        await asyncio.gather(*(provider.close() for provider in self._providers.values()))

    # --- AgentCatalog ------------------------------------------------------------------------------------------------

    def has(self, agent_id: str) -> bool:
        """Whether the agent is configured."""
        return agent_id in self._settings.agents.list

    def timeout_s(self, agent_id: str) -> float:
        """Its run budget; 0 = none."""
        return self._settings.agents.list[agent_id].timeout_seconds

    def max_turns(self, agent_id: str) -> int:
        """Model calls of a run at most; 0 = unlimited."""
        return self._settings.agents.list[agent_id].max_turns

    def verbose(self, agent_id: str) -> str:
        """How much of tool calls its watchers see: off, on, full."""
        return self._agent(agent_id).verbose

    def reasoning(self, agent_id: str) -> str:
        """How its models' reasoning is shown: off, on, stream."""
        return self._agent(agent_id).reasoning

    def choose(self, agent_id: str, requested: str = "", *, session: str = "") -> ModelChoice:
        """The model of a run. Raises MODEL_UNKNOWN, MODEL_NOT_CONFIGURED."""
        return self._choices.choose(agent_id, requested, session=session)

    def check_thinking(self, agent_id: str, model: str, level: ThinkingLevel) -> None:
        """Raises FIELD_INVALID for a level that the model is known not to have."""
        self._choices.check_thinking(agent_id, model, level)

    # --- what sessions may set ------------------------------------------------------------------------------------

    def settable_model(self, agent_id: str, reference: str) -> str:
        """`provider/model`, checked as that of a message. Raises as `choose`, and AGENT_NOT_FOUND."""
        self._check_agent(agent_id)
        return self.choose(agent_id, reference).reference

    def check_settable_thinking(self, agent_id: str, model: str, level: str) -> None:
        """Raises AGENT_NOT_FOUND, and FIELD_INVALID (`thinking`) for a level that the session's model does not have.
        Where no model can be chosen there is nothing to check; a message will say so."""
        self._check_agent(agent_id)
        try:
            chosen = self.choose(agent_id, session=model)
        except LanewayError:
            return
        self.check_thinking(agent_id, chosen.reference, ThinkingLevel(level))

    def _check_agent(self, agent_id: str) -> None:
        if not self.has(agent_id):
            what = f"there is no agent {agent_id!r} any more; add [agents.list.{agent_id}] to the settings"
            raise LanewayError(ErrorCode.AGENT_NOT_FOUND, what)

    # --- listings ----------------------------------------------------------------------------------------------------

    def agents(self, tools: tuple[str, ...]) -> list[AgentListing]:
        """The agents for ListAgents."""
        return self._choices.agents(tools)

    def models(self) -> list[ModelListing]:
        """The models for ListModels."""
        return self._choices.models()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _agent(self, agent_id: str) -> AgentSettings:
        """Also of an agent that is gone: its sessions can still be watched."""
        return self._settings.agents.list.get(agent_id, self._settings.agents.defaults)

    def _facts_of(self, name: str, service: ProviderSettings) -> ProviderFacts:
        return ProviderFacts(
            api=service.api,
            has_key=self.keys.has_key(name),
            key_source=self.keys.sources(name),
        )

    def _make(self, name: str) -> Provider:
        if name == SCRIPTED_PROVIDER:
            return ScriptedProvider(
                scripts_dir=self._settings.home / "scripts", clock=self._clock, new_call_id=random_call_id
            )
        if name == LOCAL_PROVIDER:
            return self._make_local()
        service, facts = self._settings.models.providers.get(name), self._facts.get(name)
        if service is None or facts is None or not facts.has_key:
            raise LanewayError(
                ErrorCode.MODEL_NOT_CONFIGURED,
                f"the provider {name!r}, which this run was accepted for, is no longer configured; "
                f"restore [models.providers.{name}] and its key, then send the message again",
            )
        models = self._settings.models
        return HttpProvider(
            service=HttpService(
                name=name,
                base_url=service.base_url,
                timeout_s=service.timeout_seconds or models.idle_timeout_seconds,
                first_event_timeout_s=models.first_event_timeout_seconds,
                is_self_hosted=bool(service.self_hosted),
                dialect_is_self_hosted=service.api == "ollama",
            ),
            dialect=make_dialect(service.api, provider=name, base_url=service.base_url),
            clock=self._clock,
            api_key=partial(self.keys.key, name),
            secrets=self.secrets,
            transport=make_transport("httpx" if models.transport == "httpx" else "aiohttp"),
        )

    def _make_local(self) -> Provider:
        problem = self._local.facts.problem
        if problem:
            what = f"the embedded model, which this run was accepted for, cannot be used: {problem}"
            raise LanewayError(ErrorCode.MODEL_NOT_CONFIGURED, what)
        return self._local.provider(lambda: self._owner)
