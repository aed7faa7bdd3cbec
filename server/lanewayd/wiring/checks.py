"""The doctor: carries out its checks on what the settings say, for the command line."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

from lanewayd.clock import SystemClock
from lanewayd.config import Flags, home_of, load_settings
from lanewayd.doctor.findings import Check, Finding, Level, in_thread, run_checks
from lanewayd.doctor.home import Holder, find_holder, look_at_clock, look_at_disk, look_at_home, look_at_lock
from lanewayd.doctor.listening import look_at_address
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
from lanewayd.errors import LanewayError, StartupError
from lanewayd.messages import LOCAL_PROVIDER
from lanewayd.providers.endpoint import address
from lanewayd.providers.http_provider import make_transport
from lanewayd.providers.local.weights import find_weights, inspect, verify
from lanewayd.providers.model_list import ask_for_models
from lanewayd.settings.models import ProviderSettings
from lanewayd.settings.schema import Settings
from lanewayd.store.opening import check_database, size_on_disk
from lanewayd.tools.redaction import Redactor
from lanewayd.wiring.dialects import make_dialect
from lanewayd.wiring.model_services import ModelServices

__all__ = ["Finding", "Flags", "Lane", "Level", "Question", "ServerReport", "StartupError", "diagnose"]

_SERVICE_LIMIT_S = 10.0
_STORE_LIMIT_S = 20.0
_QUICK_CHECK_MAX_BYTES = 256 * 2**20
# Its list of models is public: this one is answered only to those who have a key.
_KEY_PATHS = {"openrouter.ai": "/key"}

AskServer = Callable[[str], Awaitable[ServerReport]]


@dataclass(frozen=True, slots=True)
class Question:
    """What the doctor is asked. `address`: the server that somebody named; None = the one that holds the home."""

    environ: Mapping[str, str]
    flags: Flags
    config_path: Path | None
    address: str | None
    min_free_bytes: int


async def diagnose(question: Question, ask_server: AskServer) -> list[Finding]:
    """Everything that is found, within half a minute. No secret stands in it."""
    home, settings, problems = home_of(question.environ), None, []
    try:
        settings = load_settings(question.environ, question.flags, question.config_path)
    except StartupError as error:
        advice = (
            "Correct it; `laneway config check` tells whether it is right now. laneway.example.toml has all settings."
        )
        problems.append(Finding("settings", Level.FAIL, str(error), advice))
    else:
        place = str(settings.config_path or f"no settings file, {len(settings.sources)} settings given elsewhere")
        problems.append(Finding("settings", Level.OK, place))
    holder: Holder | None = None

    async def look_for_holder() -> Sequence[Finding]:
        nonlocal holder
        holder = await in_thread(partial(find_holder, home))
        return ()

    problems += await run_checks([Check("lock", look_for_holder)])
    checks = _machine_checks(question, home, settings, holder)
    checks.append(Check("server", partial(_look_at_server, question, home, holder, ask_server), 12.0))
    secrets: list[str] = []
    if settings is not None:
        checks.append(Check("store", partial(_look_at_store, settings, holder), _STORE_LIMIT_S))
        try:
            models = ModelServices(settings, environ=question.environ, clock=SystemClock())
        except StartupError as error:
            problems.append(Finding("key", Level.FAIL, str(error), "Put the key alone into its place."))
        else:
            secrets = list(models.secrets())
            checks += _model_checks(settings, models)
    redactor = Redactor(secrets)
    findings = [*problems, *await run_checks(checks)]
    return [
        replace(finding, text=redactor.text(finding.text), advice=redactor.text(finding.advice)) for finding in findings
    ]


def _machine_checks(question: Question, home: Path, settings: Settings | None, holder: Holder | None) -> list[Check]:
    places = [home, settings.store_path.parent] if settings else [home]
    checks = [
        Check("home", lambda: in_thread(partial(look_at_home, home))),
        Check("disk", lambda: in_thread(partial(look_at_disk, places, min_free_bytes=question.min_free_bytes))),
        Check("clock", lambda: in_thread(partial(look_at_clock, home))),
    ]
    if settings is not None:
        look = partial(
            look_at_address,
            settings.listen,
            own_address=holder.address if holder else "",
            is_starting=holder is not None,
        )
        checks.append(Check("listen", lambda: in_thread(look)))
    return checks


async def _look_at_server(
    question: Question, home: Path, holder: Holder | None, ask_server: AskServer
) -> Sequence[Finding]:
    """The lock and the server that has it, or the server that somebody named."""
    address = question.address or (holder.address if holder else "")
    report = await ask_server(address) if address else None
    own_answers = False
    if holder is not None and holder.address and report is not None:
        own = report if address == holder.address else await ask_server(holder.address)
        own_answers = not own.problem
    findings = list(look_at_lock(home, holder, answers=own_answers))
    if report is not None:
        return findings + judge_server(report, own_version=metadata.version("laneway"))
    if holder is None:
        findings.append(Finding("server", Level.OK, "none runs on this home; `laneway serve` starts one"))
    return findings


async def _look_at_store(settings: Settings, holder: Holder | None) -> Sequence[Finding]:
    path = settings.store_path

    def look() -> Sequence[Finding]:
        if not path.exists() and path.parent == settings.home:
            return [Finding("store", Level.OK, f"{path} does not exist yet; the first server makes it")]
        try:
            # What a running server uses it has checked itself.
            check_database(path, quick_check_max_bytes=0 if holder else _QUICK_CHECK_MAX_BYTES)
        except StartupError as error:
            advice = "The file was left as it is. `laneway backup --help` says how a backup is restored."
            return [Finding("store", Level.FAIL, str(error), advice)]
        return [Finding("store", Level.OK, f"{path}, {size_on_disk(path) / 2**20:.1f} MiB")]

    return await in_thread(look)


def _model_checks(settings: Settings, models: ModelServices) -> list[Check]:
    agents = [_model_of(agent, settings, models) for agent in settings.agents.list]
    used: dict[str, list[str]] = {}
    for agent in agents:
        provider, _, model = agent.reference.partition("/")
        if model and model not in used.setdefault(provider, []):
            used[provider].append(model)
    checks = [Check("model", partial(_look_at_models, settings, agents, used))]
    for name, service in settings.models.providers.items():
        is_named = any(source.startswith(f"models.providers.{name}.") for source in settings.sources)
        if not (name in used or is_named or models.keys.groups[name].names):
            continue
        asked = Service(name, service.base_url, service.key_source, tuple(used.get(name, ())), is_named)
        for each in _profiles_of(asked, service, is_single=len(service.all_profiles) < 2):
            look = partial(_look_at_service, settings, each, models)
            checks.append(Check("service", look, _SERVICE_LIMIT_S + 2))
    return checks


def _profiles_of(asked: Service, service: ProviderSettings, *, is_single: bool) -> list[Service]:
    """Each key of a service is a question of its own."""
    if is_single:
        return [asked]
    return [
        replace(asked, profile=profile, key_source=place.key_source) for profile, place in service.all_profiles.items()
    ]


def _model_of(agent: str, settings: Settings, models: ModelServices) -> AgentModel:
    is_named = settings.agents.list[agent].model is not None
    try:
        return AgentModel(agent, reference=models.choose(agent).reference, is_named=is_named)
    except LanewayError as error:
        return AgentModel(agent, problem=error.message, is_named=is_named)


async def _look_at_models(
    settings: Settings, agents: Sequence[AgentModel], used: Mapping[str, Sequence[str]]
) -> Sequence[Finding]:
    is_used = LOCAL_PROVIDER in used
    weights = await in_thread(partial(find_weights, settings.models.local.gguf))
    weights = await in_thread(partial(inspect, weights))
    if is_used:  # their content is of interest only then: 100 MB
        weights = await in_thread(partial(verify, weights))
    problem = weights.advice if settings.models.local.enabled else "It is switched off: `models.local.enabled`."
    embedded = EmbeddedModel(f"{LOCAL_PROVIDER}/{weights.model}", weights.is_embedded, problem)
    found = judge_agents(agents, embedded, embedded_provider=LOCAL_PROVIDER)
    return [*found, judge_embedded(embedded, is_used=is_used)]


async def _look_at_service(settings: Settings, service: Service, models: ModelServices) -> Sequence[Finding]:
    configured = settings.models.providers[service.name]
    key = models.keys.at_start(service.name, service.profile)
    if service.key_source and not key:
        return [judge_missing_key(service)]
    dialect = make_dialect(configured.api, provider=service.name)
    path = _KEY_PATHS.get(urlsplit(service.base_url).hostname or "", dialect.models_path)
    listed = await ask_for_models(
        address(service.base_url, path),
        headers=dialect.headers(key),
        api_key=key,
        transport=make_transport("httpx" if settings.models.transport == "httpx" else "aiohttp"),
        limit_s=_SERVICE_LIMIT_S,
        now=SystemClock().now(),
    )
    fault = listed.fault
    answer = ServiceAnswer(
        fault.reason if fault else None,
        fault.what if fault else "",
        fault.said if fault else "",
        listed.http_status,
        listed.models,
    )
    return judge_service(service, answer)
