"""Accept, look up, wait, abort: every change of a run's row that a caller asks for goes through here.

The registry resolves what a message means (agent, session, model, limits), gives the store the command, and hears of
each commit: it puts an accepted run into the lanes before the caller learns of it (D-1), and wakes those who wait.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

from lanewayd.errors import ErrorCode, FieldError, LanewayError
from lanewayd.loop.answer_schema import SchemaRefused, schema_of
from lanewayd.messages import Attachment
from lanewayd.queueing.modes import QueueDefaults
from lanewayd.records import Run, RunRequest, RunState
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.interface import AbortReceipt, NewAttachment, NewMessage, WaitOutcome, WaitResult
from lanewayd.runs.model_of_message import ModelCatalog, ModelOfMessage
from lanewayd.runs.outcome import StopCause
from lanewayd.runs.room import AcceptLimits, Room
from lanewayd.runs.scheduler import Scheduler
from lanewayd.sessions.keys import DEFAULT_AGENT, agent_of, canonical_key, normal_agent_id, one_off_key
from lanewayd.store.interface import (
    AbortRequested,
    Accepted,
    AcceptRun,
    Appended,
    AppendToRun,
    IdempotencyKey,
    Injected,
    RequestAbort,
    RunFilter,
    SessionSelector,
    Started,
)

logger = logging.getLogger(__name__)

ABORT_ANSWER_S = 5.0
"""`Abort` waits at most this long for terminal events (D-20)."""
KEY_KEPT_FOR = timedelta(hours=24)


class AgentCatalog(ModelCatalog, Protocol):
    """The agents of the settings."""

    def has(self, agent_id: str) -> bool:
        """Whether the agent is configured."""

    def timeout_s(self, agent_id: str) -> float:
        """Its run budget; 0 = none."""

    def max_turns(self, agent_id: str) -> int:
        """Model calls of a run at most; 0 = unlimited."""

    def reasoning(self, agent_id: str) -> str:
        """How its models' reasoning is shown: off, on, stream."""


class RunRegistry:
    """The run service of one process."""

    def __init__(
        self,
        collaborators: Collaborators,
        *,
        scheduler: Scheduler,
        agents: AgentCatalog,
        limits: AcceptLimits,
        queue: QueueDefaults,
    ) -> None:
        self._store = collaborators.store
        self._clock = collaborators.clock
        self._ids = collaborators.ids
        self._watches = collaborators.watches
        self._metrics = collaborators.telemetry.metrics
        self._scheduler = scheduler
        self._agents = agents
        self._limits = limits
        self._queue = queue
        self._blobs = collaborators.blobs
        self._room = Room(limits, scheduler)
        self._is_refusing = False

    # --- calls -------------------------------------------------------------------------------------------------------

    async def accept(self, message: NewMessage) -> Accepted:
        """Make the message durable; returns when it is. Cancelling the caller changes nothing any more.

        Raises AGENT_NOT_FOUND, SESSION_KEY_MALFORMED, FIELD_INVALID, MODEL_UNKNOWN, MODEL_NOT_CONFIGURED,
        IDEMPOTENCY_KEY_REUSED, SESSION_NOT_FOUND, RUN_NOT_FOUND, NESTED_IN_SESSION, QUEUE_FULL, DRAINING,
        STORE_UNAVAILABLE.
        """
        if self._is_refusing:
            raise LanewayError(
                ErrorCode.DRAINING, "the server is leaving and takes no more messages; send it again", retry_after_s=1.0
            )
        key = _key_of(message)
        try:
            session_key, agent_id = await self._session_of(message)
            await _check_schema(message.response_schema_json)
            command = self._command(message, key, session_key, agent_id)
        except LanewayError:
            # What was accepted once is answered again, whatever the settings say by now (D-6).
            answer = await self._store.answer(message.tenant, key, self._clock.now()) if key else None
            if answer is None:
                raise
            return answer
        with (
            self._room.taken(message.tenant),
            self._blobs.holding([file.blob_hash for file in message.attachments]),
        ):
            if message.attachments and command.refusal is None:
                command = await self._with_attachments(command, message.attachments)
            # A caller that goes away from here on changes nothing: the writer has the command before any later sweep.
            return await self._store.accept(command)

    async def run(self, tenant: str, run_id: str) -> Run:
        """The run as it is. Raises RUN_NOT_FOUND."""
        run = await self._store.run(tenant, run_id)
        if run is None:
            raise LanewayError(
                ErrorCode.RUN_NOT_FOUND,
                "there is no such run, or it is older than the retention",
                metadata={"run_id": run_id},
            )
        return run

    async def runs(  # noqa: PLR0913 - the filters of one list
        self,
        tenant: str,
        *,
        session_key: str = "",
        states: tuple[RunState, ...] = (),
        agent_id: str = "",
        label: str = "",
        before_no: int | None = None,
        limit: int = 50,
    ) -> list[Run]:
        """Newest first, those below `before_no` in acceptance order; empty parts do not filter."""
        key = canonical_key(session_key) if session_key else ""
        which = RunFilter(key, states, normal_agent_id(agent_id) if agent_id else "", label)
        return await self._store.runs(tenant, which, before_no=before_no, limit=limit)

    async def wait(self, tenant: str, run_id: str, timeout_s: float) -> WaitResult:
        """The run when it has ended, or as it is after `timeout_s` or when the server leaves. Raises RUN_NOT_FOUND."""
        watch = self._watches.find(run_id)
        if watch is None or watch.tenant != tenant:
            run = await self.run(tenant, run_id)
            watch = self._watches.find(run_id)
            if run.state.is_ended or watch is None:
                return WaitResult(WaitOutcome.ENDED if run.state.is_ended else WaitOutcome.EXPIRED, run)
        await self._watches.until_ended(watch, timeout_s)
        run = watch.ended or await self.run(tenant, run_id)
        if run.state.is_ended:
            return WaitResult(WaitOutcome.ENDED, run)
        outcome = WaitOutcome.DRAINING if self._watches.is_leaving else WaitOutcome.EXPIRED
        return WaitResult(outcome, run, watch.pending_error)

    async def abort_run(self, tenant: str, run_id: str, *, stop_reason: str, reason: str) -> AbortReceipt:
        """Abort one run (D-20). Raises RUN_NOT_FOUND; an ended run is an empty receipt."""
        return await self._abort(
            RequestAbort(tenant, self._clock.now(), stop_reason=stop_reason, reason=reason, run_id=run_id)
        )

    async def abort_session(
        self, tenant: str, session_key: str, *, clear_queued: bool, stop_reason: str, reason: str
    ) -> AbortReceipt:
        """Abort a session's running run and, with `clear_queued`, before it the queued ones.

        Raises SESSION_NOT_FOUND.
        """
        key = canonical_key(session_key)
        if await self._store.session(tenant, key) is None:
            raise LanewayError(ErrorCode.SESSION_NOT_FOUND, f"there is no session {key}")
        return await self._abort(
            RequestAbort(
                tenant,
                self._clock.now(),
                stop_reason=stop_reason,
                reason=reason,
                session_key=key,
                clear_queued=clear_queued,
            )
        )

    # --- what the drain says -----------------------------------------------------------------------------------------

    def refuse(self) -> None:
        """From now on `accept` answers DRAINING."""
        self._is_refusing = True

    # --- what the store says (part of writer_interface.CommitListener) ------------------------------------------------

    def committed(self, command: object, result: object) -> None:
        """A command is durable: lanes and waiters learn of it."""
        if isinstance(result, Accepted):
            self._accepted(result)
        elif isinstance(result, Started):
            self._started(result)
        elif isinstance(result, Appended):
            if result.run is not None:
                for run in (*result.settled, result.run):
                    self._ended(run)
                for run in result.detached:
                    self._scheduler.enqueue_detached(run)
            elif isinstance(command, AppendToRun) and any(change.got_on for change in command.changes):
                self._scheduler.got_on(command.run_id)
        elif isinstance(result, Injected):
            self._merged(result.merged)
        elif isinstance(result, AbortRequested) and isinstance(command, RequestAbort):
            self._ended_in_queue(result.cancelled)
            for run_id in result.running:
                self._scheduler.stop(run_id, StopCause.ABORT, command.stop_reason)

    def _accepted(self, result: Accepted) -> None:
        if result.run is None:
            return
        logger.info("run accepted", extra=_fields(result.run))
        self._metrics.run_accepted(result.run.request.lane, result.run.request.priority.name.lower())
        self._watches.open(result.run)
        if result.run.host_run_id:
            self._scheduler.attach(result.run)
        else:
            self._scheduler.enqueue(result.run)
        if result.interrupted_run_id:
            self._scheduler.stop(result.interrupted_run_id, StopCause.ABORT, "interrupt")
        self._ended_in_queue(result.dropped)

    def _started(self, result: Started) -> None:
        logger.info("run started", extra={**_fields(result.run), "attempt": result.run.attempt})
        if result.run.attempt > 1:
            self._metrics.run_recovered()
        self._merged(result.merged)

    def _merged(self, runs: Sequence[Run]) -> None:
        for run in runs:
            logger.info("run merged", extra={**_fields(run), "host_run_id": run.host_run_id})
            self._scheduler.cancel_queued(run)

    def _ended_in_queue(self, runs: Sequence[Run]) -> None:
        for run in runs:
            self._scheduler.cancel_queued(run)
            self._ended(run)

    def _ended(self, run: Run) -> None:
        reason = run.error.reason if run.error is not None else ""
        logger.info("run ended", extra={**_fields(run), "stop_reason": run.stop_reason, "reason": reason})
        self._metrics.run_ended(run.state.value, reason or run.stop_reason)
        self._scheduler.ended(run.run_id)
        self._watches.close(run)

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _session_of(self, message: NewMessage) -> tuple[str, str]:
        """(canonical session key, agent id) of a message."""
        wanted = normal_agent_id(message.agent_id) if message.agent_id else ""
        if message.session_key:
            key = canonical_key(message.session_key, wanted)
        elif message.session_id:
            owner = await self._store.session_key_of(message.tenant, message.session_id)
            if owner is None:
                raise LanewayError(ErrorCode.SESSION_NOT_FOUND, "there is no session with this session_id")
            key = canonical_key(owner, wanted)
        else:
            key = one_off_key(wanted or DEFAULT_AGENT, self._ids.session())
        return key, self.owner_of(key)

    def owner_of(self, key: str) -> str:
        """The agent of a canonical key that a session may have. Raises SESSION_KEY_MALFORMED, AGENT_NOT_FOUND."""
        if len(key.encode("utf-8", "replace")) > self._limits.max_session_key_bytes:
            raise FieldError(
                ErrorCode.SESSION_KEY_MALFORMED,
                "session_key",
                f"the key in its canonical form, agent:<agent id>:<key>, has more than "
                f"{self._limits.max_session_key_bytes} bytes",
            )
        agent_id = agent_of(key)
        if not self._agents.has(agent_id):
            raise LanewayError(
                ErrorCode.AGENT_NOT_FOUND,
                f"there is no agent {agent_id!r}; add [agents.list.{agent_id}] to the settings",
            )
        return agent_id

    def _command(self, message: NewMessage, key: IdempotencyKey | None, session_key: str, agent_id: str) -> AcceptRun:
        timeout_s = self._agents.timeout_s(agent_id) if message.timeout_s is None else message.timeout_s
        model = ModelOfMessage.of(self._agents, agent_id, requested=message.model, thinking=message.thinking)
        request = RunRequest(
            message=message.message,
            agent_id=agent_id,
            lane=message.lane.strip(),
            priority=message.priority,
            model="",  # the session may have a say: `adapt`
            timeout_s=timeout_s,
            extra_system_prompt=message.extra_system_prompt,
            label=message.label,
            tools_allow=message.tools_allow,
            tools_deny=message.tools_deny,
            max_turns=message.max_turns or self._agents.max_turns(agent_id),
            thinking=message.thinking,
            max_output_tokens=message.max_output_tokens,
            temperature=message.temperature,
            seed=message.seed,
            response_schema_json=message.response_schema_json,
            reasoning=self._agents.reasoning(agent_id),
            parent_run_id=message.parent_run_id,
            metadata=message.metadata,
            queue_mode=message.queue_mode,
            channel=message.channel,
            to=message.to,
            account_id=message.account_id,
            thread_id=message.thread_id,
            provenance_json=message.provenance_json,
            traceparent=message.traceparent,
        )
        return AcceptRun(
            tenant=message.tenant,
            run_id=self._ids.run(),
            session=SessionSelector(session_key, message.session_id, agent_id, message.label, self._ids.session()),
            request=request,
            adapt=model.adapt,
            key=key,
            now=self._clock.now(),
            max_depth=self._limits.max_depth,
            queue=self._queue.rules_for(message.channel),
            refusal=self._room.refusal(message.tenant),
        )

    async def _with_attachments(self, command: AcceptRun, files: Sequence[NewAttachment]) -> AcceptRun:
        """The command with its files, which are synced: a transaction that names them follows."""
        for file in files:
            await self._blobs.put(file.blob_hash, file.data)
        attachments = tuple(Attachment(file.name, file.mime_type, file.blob_hash, len(file.data)) for file in files)
        return replace(command, request=replace(command.request, attachments=attachments))

    async def _abort(self, command: RequestAbort) -> AbortReceipt:
        requested = await self._store.request_abort(command)
        deadline = self._clock.monotonic() + ABORT_ANSWER_S
        aborted, pending = [], []
        for run_id in requested.running:
            watch = self._watches.find(run_id)
            if watch is not None:
                await self._watches.until_ended(watch, deadline - self._clock.monotonic())
            run = await self._store.run(command.tenant, run_id)
            if run is not None and not run.state.is_ended:
                pending.append(run_id)
            elif run is not None and run.state is RunState.CANCELLED:
                aborted.append(run_id)
        cancelled = tuple(run.run_id for run in requested.cancelled)
        return AbortReceipt(tuple(aborted), cancelled, tuple(pending))


async def _check_schema(schema_json: str) -> None:
    """Raises FIELD_INVALID for a schema that no answer can be checked with. In a thread: it may be large."""
    if not schema_json:
        return
    try:
        await asyncio.to_thread(schema_of, schema_json)
    except SchemaRefused as refused:
        what = f"response_schema cannot be used: {refused}"
        raise FieldError(ErrorCode.FIELD_INVALID, "response_schema", what) from None


def _key_of(message: NewMessage) -> IdempotencyKey | None:
    if not message.idempotency_key:
        return None
    return IdempotencyKey(message.idempotency_key, message.request_hash, message.hash_version, KEY_KEPT_FOR)


def _fields(run: Run) -> dict[str, str]:
    return {"run_id": run.run_id, "session_key": run.session_key, "state": run.state.value}
