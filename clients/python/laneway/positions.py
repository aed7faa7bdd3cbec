"""Where a subscription stands: which messages are new, and what to ask for after a lost connection. Pure."""

from laneway.errors import LanewayError
from laneway.v1 import agent_pb2, event_pb2

TERMINAL_PHASES = frozenset({event_pb2.LIFECYCLE_PHASE_END, event_pb2.LIFECYCLE_PHASE_ERROR})


def is_terminal(event: event_pb2.Event) -> bool:
    """Whether `event` is the last one of its run."""
    return event.WhichOneof("payload") == "lifecycle" and event.lifecycle.phase in TERMINAL_PHASES


class Position:
    """The position of one subscription, from its first request to its end, over any number of connections."""

    def __init__(self, request: agent_pb2.SubscribeRequest) -> None:
        self._request = agent_pb2.SubscribeRequest()
        self._request.CopyFrom(request)
        self._is_of_run = request.WhichOneof("target") == "run_id"
        self._has_events = False
        self.is_at_end = False
        """The terminal event of the run was taken."""

    @property
    def request(self) -> agent_pb2.SubscribeRequest:
        """What to subscribe with now."""
        request = agent_pb2.SubscribeRequest()
        request.CopyFrom(self._request)
        return request

    def take(self, event: event_pb2.Event) -> bool:
        """Move on to `event`; whether the reader is to get it: stored events it has not got, and the first snapshot."""
        kind = event.WhichOneof("payload")
        if kind == "snapshot":
            return self._take_snapshot(event.snapshot)
        if kind == "progress" and not self._is_of_run and event.progress.cursor:
            self._request.cursor = event.progress.cursor
        if event.seq <= 0:
            return False
        if self._is_of_run:
            if self._request.HasField("after_seq") and event.seq <= self._request.after_seq:
                return False
            self._request.after_seq = event.seq
            self.is_at_end = is_terminal(event)
        else:
            self._request.cursor = event.cursor
        self._has_events = True
        return True

    def _take_snapshot(self, snapshot: event_pb2.SnapshotEvent) -> bool:
        is_first = self._is_of_run and not self._request.HasField("after_seq")
        if is_first:
            # From here on the events are asked for, so that no second snapshot comes.
            self._request.after_seq = max(0, snapshot.first_seq - 1)
        return is_first

    def lose(self, error: LanewayError) -> None:
        """The stream ended with `error`: a server that leaves says where the reader stands."""
        cursor = error.metadata.get("cursor", "")
        if error.reason == "DRAINING" and cursor and not self._is_of_run:
            self._request.cursor = cursor

    @property
    def may_end(self) -> bool:
        """Whether a stream that ended with OK has told everything: a run without further events. Any other target has
        no end, and a run of which there were events ends with its terminal event."""
        return self._is_of_run and not self._has_events
