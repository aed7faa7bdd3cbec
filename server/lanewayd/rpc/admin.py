"""AdminService: the state of the service, and its leaving."""

from laneway.v1 import admin_pb2
from lanewayd.messages import valid_text
from lanewayd.rpc.convert import int32, int64, run_state, timestamp
from lanewayd.rpc.interface import Admin, ServiceStatus
from lanewayd.rpc.methods import Call


class AdminHandlers:
    """The methods of AdminService under their names in the contract."""

    def __init__(self, *, admin: Admin) -> None:
        self._admin = admin

    async def GetStatus(self, request: admin_pb2.GetStatusRequest, call: Call) -> admin_pb2.GetStatusResponse:
        return _status_response(await self._admin.status())

    async def Drain(self, request: admin_pb2.DrainRequest, call: Call) -> admin_pb2.DrainResponse:
        self._admin.drain()
        return admin_pb2.DrainResponse()


def _status_response(status: ServiceStatus) -> admin_pb2.GetStatusResponse:
    lanes = [
        admin_pb2.LaneStatus(
            name=valid_text(lane.name), width=int32(lane.width), active=int32(lane.active), queued=int32(lane.queued)
        )
        for lane in sorted(status.lanes, key=lambda lane: lane.name)
    ]
    return admin_pb2.GetStatusResponse(
        version=status.version,
        features=sorted(status.features),
        started_at=timestamp(status.started_at),
        draining=status.draining,
        lanes=lanes,
        runs_by_state={run_state(state): count for state, count in status.runs_by_state.items()},
        sessions=int64(status.sessions),
        subscribers=int32(status.subscribers),
        store=admin_pb2.StoreStatus(
            path=valid_text(status.store_path), bytes=int64(status.store_bytes), commit_ms=status.commit_ms
        ),
    )
