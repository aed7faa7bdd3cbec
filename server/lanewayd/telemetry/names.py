"""Every name that telemetry carries: spans, attributes, events, metrics, in both versions of the GenAI conventions.

The GenAI conventions are in status Development: what they rename is changed here and nowhere else.
Sources: open-telemetry/semantic-conventions-genai v0.1.0; open-telemetry/semantic-conventions v1.41.0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SCOPE: Final = "laneway"
"""Instrumentation scope of all signals, and the service's name unless the environment gives one."""


class Semconv(StrEnum):
    """Version of the GenAI conventions (`telemetry.semconv`)."""

    V0_1_0 = "0.1.0"
    V1_41 = "1.41"


@dataclass(frozen=True, slots=True)
class ConventionNames:
    """What differs between the versions. An empty name: the version has no such metric."""

    schema_url: str
    inference_duration: str
    time_to_first_chunk: str
    time_per_output_chunk: str
    token_usage: str = ""
    """One histogram for all, by token type; else the counters and histograms named below."""
    has_agent_metrics: bool = True
    """Metrics of runs and tools."""


NAMES: Mapping[Semconv, ConventionNames] = {
    Semconv.V0_1_0: ConventionNames(
        schema_url="https://opentelemetry.io/schemas/gen-ai/0.1.0",
        inference_duration="gen_ai.client.inference.duration",
        time_to_first_chunk="gen_ai.client.inference.time_to_first_chunk",
        time_per_output_chunk="gen_ai.client.inference.time_per_output_chunk",
    ),
    Semconv.V1_41: ConventionNames(
        schema_url="https://opentelemetry.io/schemas/1.41.0",
        inference_duration="gen_ai.client.operation.duration",
        time_to_first_chunk="gen_ai.client.operation.time_to_first_chunk",
        time_per_output_chunk="gen_ai.client.operation.time_per_output_chunk",
        token_usage="gen_ai.client.token.usage",
        has_agent_metrics=False,
    ),
}

# --- spans: name = operation and its subject -------------------------------------------------------------------------

INVOKE_AGENT: Final = "invoke_agent"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"

OTHER: Final = "other"
"""Stands for what a caller or a model named and the settings do not know."""

# --- attributes of the conventions -----------------------------------------------------------------------------------

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"
TOOL: Final = "gen_ai.tool.name"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
ERROR_TYPE: Final = "error.type"

# Content: only with telemetry.capture_content.
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"

PROVIDER_NAMES: Mapping[str, str] = {"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}
"""Providers that the conventions call otherwise than the settings do."""

# --- attributes and events of our own --------------------------------------------------------------------------------

RUN_ID: Final = "laneway.run_id"
RUN_STATE: Final = "laneway.run.state"
RUN_STOP_REASON: Final = "laneway.run.stop_reason"
ATTEMPT: Final = "laneway.run.attempt"
CANCELLED: Final = "laneway.cancelled"
"""The work was stopped from outside; that is no error of it."""
TOOL_OUTCOME: Final = "laneway.tool.outcome"
LINK: Final = "laneway.link"
"""What a link of a run's span points at: `caller` or `previous_attempt`."""
QUEUE_WAIT_EVENT: Final = "laneway.queue_wait"
QUEUE_WAIT_SECONDS: Final = "laneway.queue_wait.seconds"
RETRY_EVENT: Final = "laneway.retry"
RETRY_DELAY_SECONDS: Final = "laneway.retry.delay_seconds"

# --- metrics of the conventions --------------------------------------------------------------------------------------

TOKENS_INPUT: Final = "gen_ai.client.inference.usage.input_tokens"
TOKENS_OUTPUT: Final = "gen_ai.client.inference.usage.output_tokens"
TOKENS_CACHE_READ: Final = "gen_ai.client.inference.usage.cache_read.input_tokens"
TOKENS_CACHE_WRITE: Final = "gen_ai.client.inference.usage.cache_write.input_tokens"
TOKENS_REASONING: Final = "gen_ai.client.inference.usage.reasoning.output_tokens"
INPUT_PER_CALL: Final = "gen_ai.client.inference.operation.input_tokens"
OUTPUT_PER_CALL: Final = "gen_ai.client.inference.operation.output_tokens"
AGENT_DURATION: Final = "gen_ai.invoke_agent.duration"
AGENT_INFERENCE_CALLS: Final = "gen_ai.invoke_agent.inference_calls"
AGENT_TOOL_CALLS: Final = "gen_ai.invoke_agent.tool_calls"
TOOL_DURATION: Final = "gen_ai.execute_tool.duration"
RPC_DURATION: Final = "rpc.server.call.duration"
RPC_SYSTEM: Final = "rpc.system.name"
RPC_METHOD: Final = "rpc.method"
RPC_STATUS: Final = "rpc.status_code"

# --- metrics of our own ----------------------------------------------------------------------------------------------

LANE_QUEUED: Final = "laneway.lane.queued"
LANE_ACTIVE: Final = "laneway.lane.active"
LANE_WAIT: Final = "laneway.lane.wait_seconds"
RUNS_ACCEPTED: Final = "laneway.runs.accepted"
RUNS_ENDED: Final = "laneway.runs.ended"
RUNS_RECOVERED: Final = "laneway.runs.recovered"
SUBSCRIBERS: Final = "laneway.subscribers"
SUBSCRIBER_LAG: Final = "laneway.subscriber.lag_events"
EVENTS_APPENDED: Final = "laneway.events.appended"
COMMIT_SECONDS: Final = "laneway.store.commit_seconds"
BATCH_ROWS: Final = "laneway.store.batch_rows"
AUDIT_DROPPED: Final = "laneway.audit.dropped"
OWN: Final = "laneway"
LONG_RUNNING: Final = "session.long_running"
STALLED: Final = "session.stalled"
STUCK: Final = "session.stuck"
LOOP_LAG: Final = "laneway.event_loop.lag_seconds"

REASON: Final = "laneway.reason"
LANE: Final = "laneway.lane"
PRIORITY: Final = "laneway.priority"
STATUS: Final = "laneway.status"
STOP_REASON: Final = "laneway.stop_reason"
