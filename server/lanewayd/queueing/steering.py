"""Which message may go into a run that is at work. Pure. Source: spec 02, R-2.68, R-2.70; spec 05, R-5.33."""

from lanewayd.records import RunRequest


def can_join(host: RunRequest, message: RunRequest) -> bool:
    """Whether the run of `host` can take `message` in: it works with what it has, so the message may ask for nothing
    else, neither tools nor model nor limits nor an answer of its own form, and must come the same way."""
    return _works_with(host) == _works_with(message) and not message.response_schema_json


def _works_with(request: RunRequest) -> tuple[object, ...]:
    return (
        request.agent_id,
        request.model,
        request.thinking,
        request.max_output_tokens,
        request.temperature,
        request.seed,
        request.extra_system_prompt,
        frozenset(request.tools_allow),
        frozenset(request.tools_deny),
        request.parent_run_id,
        request.channel,
        request.to,
        request.account_id,
        request.thread_id,
    )
