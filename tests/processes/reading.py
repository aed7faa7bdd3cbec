"""Small questions about a run that several tests ask."""

import json

from tests.fakes.server_process import ServerProcess

from laneway.v1 import event_pb2, session_pb2


def is_recovery(event: event_pb2.Event) -> bool:
    """RECOVERED."""
    return event.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_RECOVERED


async def results_of(server: ServerProcess, session_key: str) -> dict[str, str]:
    """Token of each call in a session's transcript -> outcome of its result; two results of one call are a failure."""
    page = await server.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key=session_key, page_size=500))
    tokens: dict[str, str] = {}
    outcomes: dict[str, str] = {}
    for entry in page.entries:
        for block in entry.assistant.content:
            if block.WhichOneof("block") == "tool_call":
                tokens[block.tool_call.call_id] = json.loads(block.tool_call.arguments_json)["token"]
        if entry.WhichOneof("body") == "tool_result":
            token = tokens[entry.tool_result.call_id]
            assert token not in outcomes
            outcomes[token] = event_pb2.ToolOutcome.Name(entry.tool_result.outcome)
    return {token: outcomes.get(token, "no result") for token in tokens.values()}
