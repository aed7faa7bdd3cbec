"""Calls in the name of one of several tenants."""

from typing import Any

from tests.fakes.service import TENANT_KEY, RunningService

from laneway.v1 import agent_pb2, run_pb2


class Tenant:
    """Calls in the name of one tenant."""

    def __init__(self, service: RunningService, name: str) -> None:
        self.service = service
        self.metadata = ((TENANT_KEY, name),)

    async def accept(self, message: str = "hello", **fields: Any) -> run_pb2.AgentResponse:
        fields.setdefault("model", "mock/any")
        return await self.service.agent.Agent(agent_pb2.AgentRequest(message=message, **fields), metadata=self.metadata)

    async def wait(self, run_id: str) -> agent_pb2.WaitResponse:
        return await self.service.agent.Wait(agent_pb2.WaitRequest(run_id=run_id), metadata=self.metadata)

    async def finish(self, **fields: Any) -> run_pb2.AgentResponse:
        accepted = await self.accept(**fields)
        await self.wait(accepted.run_id)
        return accepted

    async def abort_session(self, session_key: str) -> agent_pb2.AbortResponse:
        """Of all its runs, also those that wait."""
        request = agent_pb2.AbortRequest(session_key=session_key, clear_queued=True)
        return await self.service.agent.Abort(request, metadata=self.metadata)
