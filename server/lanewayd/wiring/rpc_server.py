"""Puts the gRPC server together over the run service: handlers, what they offer, and how large requests may be."""

from importlib import metadata

import grpc

from lanewayd.rpc.admin import AdminHandlers
from lanewayd.rpc.agent import AgentHandlers
from lanewayd.rpc.health import HealthHandlers
from lanewayd.rpc.limits import Limits
from lanewayd.rpc.methods import TenantResolver
from lanewayd.rpc.server import build_server, server_options
from lanewayd.rpc.sessions import SessionHandlers
from lanewayd.runs.admin import Admin, Offer
from lanewayd.runs.drain import Drain
from lanewayd.settings.schema import Settings
from lanewayd.wiring.run_service import Ground, RunService
from lanewayd.wiring.sessions import make_sessions
from lanewayd.wiring.workshop import BuiltInWorkshop


def make_rpc_server(
    ground: Ground,
    runs: RunService,
    *,
    workshop: BuiltInWorkshop,
    drain: Drain,
    health: HealthHandlers,
    tenant_of: TenantResolver,
) -> grpc.aio.Server:
    """The server with all its services, without an address yet."""
    settings, limits = ground.settings, request_limits(ground.settings)
    admin = Admin(
        _offer(ground, workshop), store=ground.store, scheduler=runs.scheduler, followers=runs.followers, drain=drain
    )
    sessions = make_sessions(runs.collaborators, runs.registry, ground.models)
    return build_server(
        agent=AgentHandlers(
            runs=runs.registry,
            logs=runs.followers,
            looks=runs.looks,
            admin=admin,
            clock=ground.clock,
            limits=limits,
        ),
        sessions=SessionHandlers(sessions=sessions, store_id=ground.store.store_id, limits=limits),
        admin=AdminHandlers(admin=admin, audit=ground.audit.ledger, store_id=ground.store.store_id, limits=limits),
        health=health,
        tenant_of=tenant_of,
        metrics=ground.telemetry.metrics,
        options=server_options(receive_bytes=settings.limits.max_receive_bytes),
    )


def _offer(ground: Ground, workshop: BuiltInWorkshop) -> Offer:
    tools = tuple(listing.name for listing in workshop.listings())
    return Offer(
        version=metadata.version("laneway"),
        started_at=ground.clock.now(),
        agents=lambda: ground.models.agents(tools),
        models=ground.models.models,
        tools=workshop.listings,
    )


def request_limits(settings: Settings) -> Limits:
    """How large requests may be."""
    limits = settings.limits
    return Limits(
        message_bytes=limits.max_message_bytes,
        session_key_bytes=limits.max_session_key_bytes,
        idempotency_key_bytes=limits.max_idempotency_key_bytes,
        metadata_keys=limits.max_metadata_keys,
        metadata_text_bytes=limits.max_metadata_bytes,
        extra_system_prompt_bytes=limits.max_extra_system_prompt_bytes,
        attachment_bytes=limits.max_attachment_bytes,
        attachments_bytes=limits.max_attachments_bytes,
    )
