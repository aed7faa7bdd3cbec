"""Puts the run service together: what accepts runs, queues them, works on them, ends them and shows them."""

from collections.abc import Callable
from dataclasses import dataclass

from lanewayd.clock import Clock
from lanewayd.runs.collaborators import Collaborators, Workshop
from lanewayd.runs.commits import CommitFeed
from lanewayd.runs.drain import ParkGate
from lanewayd.runs.followers import Followers
from lanewayd.runs.ids import Ids
from lanewayd.runs.lanes import LaneBook
from lanewayd.runs.looks import SessionLooks
from lanewayd.runs.recovery import Recovery
from lanewayd.runs.registry import RunRegistry
from lanewayd.runs.scheduler import Scheduler
from lanewayd.runs.settling import Settling
from lanewayd.runs.supervision import Supervision
from lanewayd.runs.watches import RunWatches
from lanewayd.settings.schema import Settings
from lanewayd.store.blobs import Blobs
from lanewayd.store.sqlite import SqliteStore
from lanewayd.telemetry.traces import Telemetry
from lanewayd.tools.redaction import Redactor
from lanewayd.transcript.archives import Archives
from lanewayd.transcript.lock import SessionLocks
from lanewayd.wiring.audit import Audit
from lanewayd.wiring.model_services import ModelServices
from lanewayd.wiring.run_settings import accept_limits, queue_defaults, reset_rules, run_settings


@dataclass(frozen=True, slots=True)
class Ground:
    """What is there before the first run, and what all parts of the service stand on."""

    settings: Settings
    clock: Clock
    ids: Ids
    models: ModelServices
    store: SqliteStore
    audit: Audit
    telemetry: Telemetry


@dataclass(frozen=True, slots=True)
class RunService:
    """The parts of one process that runs go through. `app` starts and stops them."""

    collaborators: Collaborators
    gate: ParkGate
    scheduler: Scheduler
    registry: RunRegistry
    followers: Followers
    looks: SessionLooks
    recovery: Recovery


def make_run_service(ground: Ground, *, workshop: Workshop, on_store_works: Callable[[bool], None]) -> RunService:
    """The run service over an open store, which tells it of its commits from now on.

    `on_store_works` hears False when a commit failed and True when one succeeds again.
    """
    settings, store, telemetry = ground.settings, ground.store, ground.telemetry
    gate = ParkGate()
    collaborators = _collaborators(ground, workshop, gate)
    settling = Settling(collaborators)
    scheduler = _scheduler(settings, collaborators, settling)
    registry = RunRegistry(
        collaborators,
        scheduler=scheduler,
        agents=ground.models,
        limits=accept_limits(settings),
        queue=queue_defaults(settings),
        resets=reset_rules(settings),
    )
    followers = Followers(store, ground.clock, metrics=telemetry.metrics)
    looks = SessionLooks(store, ground.models)
    store.tell_commits(telemetry.metrics.group_committed)
    store.listener = CommitFeed(
        followers,
        registry,
        looks=looks,
        on_store_works=on_store_works,
        metrics=telemetry.metrics,
        auditing=ground.audit.auditing,
    )
    recovery = Recovery(
        collaborators, scheduler=scheduler, settling=settling, max_attempts=settings.recovery.max_attempts
    )
    return RunService(collaborators, gate, scheduler, registry, followers, looks, recovery)


def _collaborators(ground: Ground, workshop: Workshop, gate: ParkGate) -> Collaborators:
    settings, clock, models = ground.settings, ground.clock, ground.models
    lock_timeout_s = settings.session.write_lock.acquire_timeout_ms / 1000
    return Collaborators(
        store=ground.store,
        blobs=Blobs(settings.home / "blobs"),
        clock=clock,
        ids=ground.ids,
        locks=SessionLocks(settings.home / "locks", clock=clock, acquire_timeout_s=lock_timeout_s),
        watches=RunWatches(clock),
        provider=models.provider,
        candidates=models.candidates,
        profiles=models.profiles,
        workshop=workshop,
        gate=gate,
        sanitiser=Redactor(models.secrets),
        settings=run_settings(settings),
        telemetry=ground.telemetry,
        archives=Archives(settings.home / "archives"),
    )


def _scheduler(settings: Settings, collaborators: Collaborators, settling: Settling) -> Scheduler:
    scheduler = Scheduler(
        LaneBook(settings.lane_widths(), tenant_width=settings.limits.tenant.max_active_runs),
        collaborators,
        settling=settling,
        supervision=lambda run, is_recovered: Supervision(
            run,
            collaborators,
            settling=settling,
            is_recovered=is_recovered,
            on_slot_free=scheduler.free_slot,
            on_left_behind=scheduler.leave_behind,
        ),
    )
    return scheduler
