"""The lists of what may stand in a request: agents, models, tools. Short, by name."""

import json
from typing import Any

from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct

from laneway.v1 import agent_pb2
from lanewayd.messages import valid_text
from lanewayd.rpc.interface import Admin, AgentListing, ModelListing, ToolListing
from lanewayd.rpc.methods import Call
from lanewayd.rpc.paging import PageTokens, page_size, slice_by_name


class Catalog:
    """Answers ListAgents, ListModels and ListTools."""

    def __init__(self, *, admin: Admin, store_id: str) -> None:
        self._admin = admin
        self._store_id = store_id

    def agents(self, request: agent_pb2.ListAgentsRequest, call: Call) -> agent_pb2.ListAgentsResponse:
        """A page of the configured agents."""
        tokens = self._tokens(request, call)
        named = [(listing.agent_id, _agent(listing)) for listing in self._admin.agents()]
        page = slice_by_name(named, after=tokens.place(request.page_token), size=page_size(request.page_size))
        return agent_pb2.ListAgentsResponse(agents=page.items, next_page_token=tokens.next_token(page))

    def models(self, request: agent_pb2.ListModelsRequest, call: Call) -> agent_pb2.ListModelsResponse:
        """A page of the known models."""
        tokens = self._tokens(request, call)
        named = [(listing.model, _model(listing)) for listing in self._admin.models()]
        page = slice_by_name(named, after=tokens.place(request.page_token), size=page_size(request.page_size))
        return agent_pb2.ListModelsResponse(models=page.items, next_page_token=tokens.next_token(page))

    def tools(self, request: agent_pb2.ListToolsRequest, call: Call) -> agent_pb2.ListToolsResponse:
        """A page of the tools."""
        tokens = self._tokens(request, call)
        named = [(listing.name, _tool(listing)) for listing in self._admin.tools()]
        page = slice_by_name(named, after=tokens.place(request.page_token), size=page_size(request.page_size))
        return agent_pb2.ListToolsResponse(tools=page.items, next_page_token=tokens.next_token(page))

    def _tokens(self, request: Any, call: Call) -> PageTokens:
        return PageTokens(request, tenant=call.tenant, store_id=self._store_id)


def _agent(listing: AgentListing) -> agent_pb2.Agent:
    return agent_pb2.Agent(
        agent_id=valid_text(listing.agent_id),
        model=valid_text(listing.model),
        tools=[valid_text(tool) for tool in listing.tools],
    )


def _model(listing: ModelListing) -> agent_pb2.Model:
    return agent_pb2.Model(
        model=valid_text(listing.model),
        api=listing.api,
        context_window=listing.context_window,
        available=listing.available,
    )


def _tool(listing: ToolListing) -> agent_pb2.Tool:
    schema = Struct()
    # By way of JSON text: only there tuples and other mappings become what Struct takes.
    ParseDict(json.loads(valid_text(json.dumps(dict(listing.schema), ensure_ascii=False))), schema)
    return agent_pb2.Tool(
        name=valid_text(listing.name),
        description=valid_text(listing.description),
        schema=schema if listing.schema else None,
        source=valid_text(listing.source),
    )
