"""From a message to a durable run (D-1): what the message means, whether there is room for it, the store's command.

Agent, session, model and limits come out of the message, the settings and, in the store's writer, the session.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from lanewayd.errors import ErrorCode, FieldError, LanewayError
from lanewayd.loop.answer_schema import SchemaRefused, schema_of
from lanewayd.messages import Attachment
from lanewayd.queueing.directives import Directives, QueueDirective, read_directives, reply_to
from lanewayd.queueing.modes import QueueDefaults
from lanewayd.records import DEFAULT_AGENT, EntryKind, NewEntry, RunRequest
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.interface import NewAttachment, NewMessage
from lanewayd.runs.model_of_message import ModelCatalog, ModelOfMessage
from lanewayd.runs.room import AcceptLimits, Room
from lanewayd.runs.scheduler import Scheduler
from lanewayd.sessions.keys import agent_of, canonical_key, normal_agent_id, one_off_key
from lanewayd.sessions.reset import ResetMode, ResetRules
from lanewayd.store.interface import Accepted, AcceptRun, IdempotencyKey, SessionSelector, TextCommand
from lanewayd.transcript.entries import reset_body

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


class Acceptance:
    """Owner of whether new messages are taken, and of the room for them."""

    def __init__(
        self,
        collaborators: Collaborators,
        *,
        scheduler: Scheduler,
        agents: AgentCatalog,
        limits: AcceptLimits,
        queue: QueueDefaults,
        resets: ResetRules,
    ) -> None:
        self._store = collaborators.store
        self._blobs = collaborators.blobs
        self._clock = collaborators.clock
        self._ids = collaborators.ids
        self._agents = agents
        self._limits = limits
        self._queue = queue
        self._resets = resets
        self._room = Room(limits, scheduler)
        self._is_refusing = False

    @property
    def entering(self) -> int:
        """Messages on their way into the store."""
        return self._room.entering

    def refuse(self) -> None:
        """From now on `accept` answers DRAINING."""
        self._is_refusing = True

    async def accept(self, message: NewMessage) -> Accepted:
        """Make the message durable; returns when it is. Cancelling the caller changes nothing any more.

        Raises AGENT_NOT_FOUND, SESSION_KEY_MALFORMED, FIELD_INVALID, MODEL_UNKNOWN, MODEL_NOT_CONFIGURED,
        IDEMPOTENCY_KEY_REUSED, SESSION_NOT_FOUND, RUN_NOT_FOUND, NESTED_IN_SESSION, SESSION_ARCHIVED, QUEUE_FULL,
        TENANT_LIMIT, DRAINING, STORE_UNAVAILABLE.
        """
        if self._is_refusing:
            raise LanewayError(
                ErrorCode.DRAINING, "the server is leaving and takes no more messages; send it again", retry_after_s=1.0
            )
        key = _key_of(message)
        said = _directives_of(message)
        message = replace(message, message=said.text)
        try:
            session_key, agent_id = await self._session_of(message)
            await _check_schema(message.response_schema_json)
            command = self._obeying(self._command(message, key, session_key, agent_id), said)
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
            if message.attachments and command.refusal is None and command.text_command is None:
                command = await self._with_attachments(command, message.attachments)
            # A caller that goes away from here on changes nothing: the writer has the command before any later sweep.
            return await self._store.accept(command)

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

    def _command(self, message: NewMessage, key: IdempotencyKey | None, session_key: str, agent_id: str) -> AcceptRun:
        model = ModelOfMessage.of(self._agents, agent_id, requested=message.model, thinking=message.thinking)
        return AcceptRun(
            tenant=message.tenant,
            run_id=self._ids.run(),
            session=SessionSelector(session_key, message.session_id, agent_id, message.label, self._ids.session()),
            request=self._request(message, agent_id),
            adapt=model.adapt,
            key=key,
            now=self._clock.now(),
            max_depth=self._limits.max_depth,
            queue=self._queue.rules_for(message.channel),
            is_stale=self._staleness(message, session_key),
            is_interaction=_speaker(message) in ("", "external_user"),
            refusal=self._room.refusal(message.tenant),
        )

    def _obeying(self, command: AcceptRun, said: Directives) -> AcceptRun:
        """The command with what the text of its message says to the service."""
        queue = said.queue or QueueDirective()
        if not said.is_alone or command.request.attachments:
            request = replace(command.request, begins_anew=said.resets)
            return replace(command, request=request, said_queue=queue.choice, forgets_queue=queue.clears)
        entry = NewEntry(self._ids.entry(), command.now, EntryKind.RESET, reset_body()) if said.resets else None
        text_command = TextCommand(
            partial(reply_to, said),
            stops=said.stops,
            reset_entry=entry,
            queue=queue.choice,
            clears_queue=queue.clears,
        )
        return replace(command, text_command=text_command, refusal=None)

    def _request(self, message: NewMessage, agent_id: str) -> RunRequest:
        """What the message asks for; what it leaves out is the agent's."""
        return RunRequest(
            message=message.message,
            agent_id=agent_id,
            lane=message.lane.strip(),
            priority=message.priority,
            model="",  # the session may have a say: `adapt`
            timeout_s=self._agents.timeout_s(agent_id) if message.timeout_s is None else message.timeout_s,
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

    def _staleness(self, message: NewMessage, session_key: str) -> Callable[[datetime, datetime], bool] | None:
        """When the message begins a new session: a system turn goes on with the one there is, and so keeps nothing
        fresh (R-3.42)."""
        policy = self._resets.policy_for(session_key, channel=message.channel, thread_id=message.thread_id)
        if policy.mode is ResetMode.NONE or _speaker(message) == "internal_system":
            return None
        return partial(self._resets.is_stale, policy, self._clock.now())

    async def _with_attachments(self, command: AcceptRun, files: Sequence[NewAttachment]) -> AcceptRun:
        """The command with its files, which are synced: a transaction that names them follows."""
        for file in files:
            await self._blobs.put(file.blob_hash, file.data)
        attachments = tuple(Attachment(file.name, file.mime_type, file.blob_hash, len(file.data)) for file in files)
        return replace(command, request=replace(command.request, attachments=attachments))


async def _check_schema(schema_json: str) -> None:
    """Raises FIELD_INVALID for a schema that no answer can be checked with. In a thread: it may be large."""
    if not schema_json:
        return
    try:
        await asyncio.to_thread(schema_of, schema_json)
    except SchemaRefused as refused:
        what = f"response_schema cannot be used: {refused}"
        raise FieldError(ErrorCode.FIELD_INVALID, "response_schema", what) from None


def _directives_of(message: NewMessage) -> Directives:
    """What a user says to the service. What other programs say is for the model, and so is a stop with files."""
    if _speaker(message) not in ("", "external_user"):
        return Directives(message.message)
    said = read_directives(message.message, is_of_channel=bool(message.channel))
    return Directives(message.message) if said.stops and message.attachments else said


def _speaker(message: NewMessage) -> str:
    """The kind of its provenance; "" = not said."""
    return str(json.loads(message.provenance_json).get("kind", "")) if message.provenance_json else ""


def _key_of(message: NewMessage) -> IdempotencyKey | None:
    if not message.idempotency_key:
        return None
    return IdempotencyKey(message.idempotency_key, message.request_hash, message.hash_version, KEY_KEPT_FOR)
