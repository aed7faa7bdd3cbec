"""A client in a process of its own: `python -m tests.cases.client_process TARGET SESSION_KEY` subscribes to the session
and says on stdout when the call has begun. With a third argument it reads no event."""

import sys

import grpc

from laneway.v1 import agent_pb2, agent_pb2_grpc


def main() -> None:
    """Subscribe until killed."""
    target, session_key = sys.argv[1:3]
    with grpc.insecure_channel(target) as channel:
        stub = agent_pb2_grpc.AgentServiceStub(channel)
        call = stub.Subscribe(agent_pb2.SubscribeRequest(session_key=session_key))
        # An answered call on the same connection: the subscription before it has arrived.
        stub.ListAgents(agent_pb2.ListAgentsRequest())
        print("subscribed", flush=True)
        if len(sys.argv) > 3:
            sys.stdin.read()
        for _ in call:
            pass


if __name__ == "__main__":
    main()
