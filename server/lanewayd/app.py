"""Composition root: builds the service from its settings, in the order that D-2 asks for, and takes it down again.

Holds no rules. The only file, with wiring/, that names implementations.
"""

import asyncio
import logging
import os
import secrets
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata

import grpc

from lanewayd.audit.activity import Pseudonyms
from lanewayd.clock import Clock, SystemClock
from lanewayd.errors import StartupError
from lanewayd.rpc.event_codec import WireEventCodec
from lanewayd.rpc.health import HealthHandlers
from lanewayd.rpc.methods import Context, TenantResolver
from lanewayd.rpc.server import SERVICE_NAMES, add_address
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.drain import Drain, DrainSettings, Leavers
from lanewayd.runs.ids import Ids
from lanewayd.settings.schema import Settings
from lanewayd.store.opening import OpenOptions
from lanewayd.store.sqlite import SqliteStore
from lanewayd.store.writer_interface import CommitGate
from lanewayd.telemetry.logs import set_up_logging
from lanewayd.telemetry.setup import Pipeline, TelemetryOptions, set_up_telemetry
from lanewayd.telemetry.traces import Telemetry
from lanewayd.tools.interface import Tool
from lanewayd.tools.leftovers import Leftovers, Owner
from lanewayd.tools.own_environment import hide_own_environment
from lanewayd.wiring.audit import audit_pseudonyms, make_audit
from lanewayd.wiring.home import Home
from lanewayd.wiring.idle_exit import IdleExit
from lanewayd.wiring.liveness import make_liveness
from lanewayd.wiring.model_services import ModelServices
from lanewayd.wiring.rpc_server import make_rpc_server
from lanewayd.wiring.run_service import Ground, RunService, make_run_service
from lanewayd.wiring.stall_exit import StallExit
from lanewayd.wiring.telemetry import telemetry_options
from lanewayd.wiring.upkeep import make_retention
from lanewayd.wiring.workshop import BuiltInWorkshop

logger = logging.getLogger(__name__)

DEFAULT_TENANT = "default"
STOP_GRACE_S = 5.0


def single_tenant(_context: Context) -> str:
    """Everybody is one tenant until authentication lands (D-6)."""
    return DEFAULT_TENANT


@dataclass(frozen=True, slots=True)
class Seams:
    """What tests give instead of the real thing."""

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=Ids)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    tenant_of: TenantResolver = single_tenant
    commit_gate: CommitGate | None = None
    store_options: OpenOptions | None = None
    more_tools: tuple[Tool, ...] = ()
    exit_now: Callable[[int], None] = os._exit
    """Ends the process without waiting for anything: a store that stays down, a tool that does not let go."""
    telemetry: Callable[[TelemetryOptions, Mapping[str, str]], Pipeline] = set_up_telemetry


class Service:
    """The whole server in one object. `start`, then `run` until it has left; or `request_drain` from anywhere."""

    def __init__(self, settings: Settings, seams: Seams | None = None, *, idle_exit_s: float | None = None) -> None:
        self._settings = settings
        self._seams = seams or Seams()
        self._idle_exit_s = idle_exit_s
        self._clock = self._seams.clock
        self._address = settings.listen
        self._stall_exit = StallExit(settings.store.stall_limit_s, clock=self._clock, exit_now=self._seams.exit_now)
        self._is_wired = False
        self._is_leaving_early = False

    @property
    def address(self) -> str:
        """Where the server listens, with its real port; as a gRPC target."""
        return self._address

    @property
    def parts(self) -> Collaborators:
        """What runs work with; for tests that look inside."""
        return self._runs.collaborators

    @property
    def runs(self) -> RunService:
        """What runs go through; for tests that look inside."""
        return self._runs

    async def start(self) -> None:
        """Home lock, store, left-over processes, recovery, listener. Raises StartupError and leaves nothing behind."""
        self._home = Home.open(self._settings.home)
        self._pipeline = Pipeline(Telemetry.off())
        start_id = secrets.token_hex(8)
        try:
            self._models = ModelServices(self._settings, environ=self._seams.environ, clock=self._clock)
            self._pipeline = self._set_up_telemetry(start_id)
            self._store = await SqliteStore.open(
                self._settings.store_path,
                codec=WireEventCodec(),
                clock=self._clock,
                gate=self._seams.commit_gate,
                options=self._seams.store_options,
            )
        except BaseException:
            self._home.close()
            await self._pipeline.close()
            raise
        owner = Owner(self._store.store_id, start_id)
        await self._models.begin(str(owner), self._store)
        self._wire(owner, await audit_pseudonyms(self._settings.audit, self._store))
        self._is_wired = True
        if self._is_leaving_early:
            self._drain.request()
        try:
            left_over = await Leftovers(owner=owner, clock=self._clock).end_of_other_starts()
            interrupted = await self._runs.recovery.recover()
            await self._listen()
        except BaseException:
            await self._close()
            raise
        logger.info(
            "serving", extra={"address": self._address, "left_over_processes": left_over, "interrupted": interrupted}
        )

    async def run(self) -> int:
        """Serve until a drain is over; the exit code."""
        self._pipeline.start()
        async with asyncio.TaskGroup() as group:
            upkeep = [
                group.create_task(self._retention.run(), name="retention"),
                group.create_task(self._audit.ledger.run(), name="audit"),
            ]
            if self._liveness is not None:
                upkeep.append(group.create_task(self._liveness.run(), name="liveness"))
            group.create_task(self._runs.scheduler.serve(), name="scheduler")
            group.create_task(self._serve(), name="serve")
            if not await self._drain.run():
                await self._leave_stuck_tools()
            self._runs.scheduler.leave()
            for task in upkeep:
                task.cancel()
        self._health.close()
        await self._server.stop(STOP_GRACE_S)
        await self._close()
        if self._runs.scheduler.left_behind:
            # What ignores that it was cancelled would hold up the end of the event loop for ever.
            logger.error("a tool of a run that was given up does not let go, leaving without it")
            self._seams.exit_now(0)
        return 0

    async def _leave_stuck_tools(self) -> None:
        """A tool ignores that it was cancelled: all runs are handed over, so the process ends with it (D-18)."""
        logger.error("a tool does not let go, leaving without it")
        await self._server.stop(None)
        await self._audit.ledger.close()
        await self._store.close()
        self._seams.exit_now(0)

    def request_drain(self) -> None:
        """Begin to leave; asked again, what runs is cut at once (D-18). During the start it waits for its end."""
        if self._is_wired:
            self._drain.request()
        else:
            self._is_leaving_early = True

    async def _serve(self) -> None:
        """Runs may start and calls are answered; the scheduler's group exists by now."""
        if not self._drain.is_draining:
            self._runs.scheduler.start_admitting()
            self._health.set_ready(True)
            self._idle_exit.arm()

    def _set_up_telemetry(self, start_id: str) -> Pipeline:
        options = telemetry_options(
            self._settings,
            self._models,
            version=metadata.version("laneway"),
            instance_id=start_id,
            monotonic=self._clock.monotonic,
        )
        try:
            return self._seams.telemetry(options, self._seams.environ)
        except OSError as error:
            port = self._settings.telemetry.prometheus_port
            raise StartupError(f"`telemetry.prometheus_port`: {port} cannot be used: {error.strerror}") from error
        except ValueError as error:
            raise StartupError(str(error)) from error

    def _wire(self, owner: Owner, pseudonyms: Pseudonyms | None) -> None:
        settings, seams, clock = self._settings, self._seams, self._clock
        self._health = HealthHandlers(SERVICE_NAMES)
        self._workshop = BuiltInWorkshop(
            settings,
            environ=seams.environ,
            owner=owner,
            clock=clock,
            address=lambda: self._address,
            more_tools=seams.more_tools,
        )
        telemetry = self._pipeline.telemetry
        self._audit = make_audit(
            settings.audit,
            pseudonyms,
            store=self._store,
            clock=clock,
            metrics=telemetry.metrics,
            tool_of=self._workshop.tool_of,
        )
        ground = Ground(settings, clock, seams.ids, self._models, self._store, self._audit, telemetry)
        self._runs = make_run_service(ground, workshop=self._workshop, on_store_works=self._store_works)
        self._retention = make_retention(settings, self._runs.collaborators, self._audit.ledger)
        self._liveness = make_liveness(settings, self._runs)
        self._drain = self._make_drain()
        self._idle_exit = IdleExit(
            self._idle_exit_s,
            clock=clock,
            is_busy=lambda: bool(len(self._runs.collaborators.watches) or self._runs.followers.count),
            leave=self._drain.request,
        )
        self._server = make_rpc_server(
            ground,
            self._runs,
            workshop=self._workshop,
            drain=self._drain,
            health=self._health,
            tenant_of=self._tenant_of,
        )

    def _make_drain(self) -> Drain:
        drain, runs = self._settings.drain, self._runs
        return Drain(
            DrainSettings(drain.announce_s, drain.timeout_s, drain.park_s),
            Leavers(runs.registry, runs.scheduler, runs.gate, runs.collaborators.watches, runs.followers),
            clock=self._clock,
            on_begin=lambda: self._health.set_ready(False),
        )

    def _tenant_of(self, context: grpc.aio.ServicerContext[bytes, bytes]) -> str:
        self._idle_exit.touch()
        return self._seams.tenant_of(context)

    async def _listen(self) -> None:
        port = add_address(self._server, self._settings.listen)
        if not self._settings.listen.startswith("unix:"):
            self._address = f"{self._settings.listen.rpartition(':')[0]}:{port}"
        await self._server.start()
        self._home.note_address(self._address)

    def _store_works(self, works: bool) -> None:
        """Readiness follows the store; a store that stays down ends the process (D-19)."""
        self._health.set_ready(works and not self._drain.is_draining)
        self._stall_exit.store_works(works)

    async def _close(self) -> None:
        """Give everything back, in the opposite order."""
        self._idle_exit.disarm()
        self._stall_exit.disarm()
        await self._models.close()
        self._workshop.close()
        await self._audit.ledger.close()
        await self._store.close()
        self._runs.collaborators.locks.close()
        self._runs.collaborators.blobs.close()
        self._home.close()
        await self._pipeline.close()  # last: a collector that does not answer must not hold the home


async def serve(settings: Settings, *, idle_exit_s: float | None = None, seams: Seams | None = None) -> int:
    """Run the service until a signal or a drain ends it; the exit code. Raises StartupError."""
    service = Service(settings, seams, idle_exit_s=idle_exit_s)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.request_drain)
    await service.start()
    return await service.run()


def main(settings: Settings, *, idle_exit_s: float | None = None, seams: Seams | None = None) -> int:
    """The server as a process: logging, the faster event loop where there is one, signals. Raises StartupError."""
    hide_own_environment()  # first, while there is one thread
    set_up_logging(captures_content=settings.telemetry.capture_content)
    try:
        import uvloop  # noqa: PLC0415 - not everywhere; the standard loop does too
    except ImportError:
        loop_factory = None
    else:
        loop_factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(serve(settings, idle_exit_s=idle_exit_s, seams=seams))
