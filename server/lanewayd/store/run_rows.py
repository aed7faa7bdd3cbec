"""Run <-> row, and the JSON of the parts of a run that are never searched. Pure."""

import json
from dataclasses import asdict
from typing import Any

from lanewayd.messages import Attachment, Payload, RunError, Usage
from lanewayd.records import Disposition, Priority, Run, RunRequest, RunState
from lanewayd.store.times import from_us, optional_from_us, optional_to_us, to_us
from lanewayd.store.transaction import Row


def to_json(value: object) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def error_json(error: RunError | None) -> str:
    """Empty for no error."""
    return to_json(asdict(error)) if error else ""


def payloads_json(payloads: tuple[Payload, ...]) -> str:
    """Empty for no payloads."""
    return to_json([asdict(payload) for payload in payloads]) if payloads else ""


def usage_json(usage: Usage | None) -> str:
    """Empty for no usage."""
    return to_json(asdict(usage)) if usage else ""


def run_parameters(run: Run) -> dict[str, object]:
    """The columns of a run that is being accepted."""
    request = run.request
    return {
        "accepted_no": run.accepted_no,
        "run_id": run.run_id,
        "tenant": run.tenant,
        "session_key": run.session_key,
        "session_id": run.session_id,
        "agent_id": request.agent_id,
        "parent_run_id": request.parent_run_id,
        "depth": run.depth,
        "label": request.label,
        "lane": request.lane,
        "priority": int(request.priority),
        "model": request.model,
        "timeout_s": float(request.timeout_s),
        "traceparent": request.traceparent,
        "state": run.state.value,
        "disposition": run.disposition.value,
        "queue_position": run.queue_position,
        "host_run_id": run.host_run_id,
        "accepted_at": to_us(run.accepted_at),
        "started_at": optional_to_us(run.started_at),
        "last_seq": run.last_seq,
        "event_bytes": run.event_bytes,
        "message": request.message,
        "extra_system_prompt": request.extra_system_prompt,
        "request_json": _rest_json(request),
    }


def run_from_row(row: Row) -> Run:
    """A row of run_rows as a Run."""
    return Run(
        run_id=row["run_id"],
        accepted_no=row["accepted_no"],
        tenant=row["tenant"],
        session_key=row["session_key"],
        session_id=row["session_id"],
        request=_request_from_row(row),
        state=RunState(row["state"]),
        disposition=Disposition(row["disposition"]),
        queue_position=row["queue_position"],
        accepted_at=from_us(row["accepted_at"]),
        depth=row["depth"],
        started_at=optional_from_us(row["started_at"]),
        ended_at=optional_from_us(row["ended_at"]),
        claim=row["claim"],
        attempt=row["attempt"],
        charges=row["charges"],
        handed_over=bool(row["handed_over"]),
        used_s=row["used_s"],
        open_message_id=row["open_message_id"],
        abort_requested_at=optional_from_us(row["abort_requested_at"]),
        abort_stop_reason=row["abort_stop_reason"],
        abort_reason=row["abort_reason"],
        host_run_id=row["host_run_id"],
        intake_open=bool(row["intake_open"]),
        first_seq=row["first_seq"],
        last_seq=row["last_seq"],
        event_bytes=row["event_bytes"],
        pruned_position=row["pruned_position"],
        error=_error(row["error_json"]),
        stop_reason=row["stop_reason"],
        truncated=bool(row["truncated"]),
        payloads=_payloads(row["payloads_json"]),
        usage=_usage(row["usage_json"]),
        output_json=row["output_json"],
        answered_by=row["answered_by"],
        void_usage=_usage(row["void_usage_json"]) or Usage(),
        corrections=row["corrections"],
    )


def _rest_json(request: RunRequest) -> str:
    return to_json(
        {
            "tools_allow": request.tools_allow,
            "tools_deny": request.tools_deny,
            "max_turns": request.max_turns,
            "metadata": request.metadata,
            "queue_mode": request.queue_mode,
            "channel": request.channel,
            "to": request.to,
            "account_id": request.account_id,
            "thread_id": request.thread_id,
            "provenance_json": request.provenance_json,
            "model_source": request.model_source,
            "thinking": request.thinking,
            "max_output_tokens": request.max_output_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "response_schema_json": request.response_schema_json,
            "reasoning": request.reasoning,
            "trace": request.trace,
            "quiet_s": request.quiet_s,
            "begins_anew": request.begins_anew,
            "attachments": [asdict(attachment) for attachment in request.attachments],
        }
    )


def _request_from_row(row: Row) -> RunRequest:
    rest: dict[str, Any] = json.loads(row["request_json"])
    rest["tools_allow"] = tuple(rest["tools_allow"])
    rest["tools_deny"] = tuple(rest["tools_deny"])
    rest["attachments"] = tuple(Attachment(**attachment) for attachment in rest.get("attachments", ()))
    return RunRequest(
        message=row["message"],
        agent_id=row["agent_id"],
        lane=row["lane"],
        priority=Priority(row["priority"]),
        model=row["model"],
        timeout_s=row["timeout_s"],
        extra_system_prompt=row["extra_system_prompt"],
        label=row["label"],
        parent_run_id=row["parent_run_id"],
        traceparent=row["traceparent"],
        **rest,
    )


def _error(text: str) -> RunError | None:
    return RunError(**json.loads(text)) if text else None


def _payloads(text: str) -> tuple[Payload, ...]:
    return tuple(Payload(**payload) for payload in json.loads(text)) if text else ()


def _usage(text: str) -> Usage | None:
    return Usage(**json.loads(text)) if text else None
