"""What a message asks of the run that answers it, beside its text: the same where one run can answer both."""

from lanewayd.records import RunRequest


def options_of(request: RunRequest) -> tuple[object, ...]:
    """Who answers, with what, and which way it goes. Limits of time and turns and the lane are a run's own."""
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
