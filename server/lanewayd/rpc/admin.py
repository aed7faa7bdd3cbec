"""AdminService: the state of the service, what was done in it, and its leaving."""

from laneway.v1 import admin_pb2
from lanewayd.audit_records import AuditRecord
from lanewayd.messages import valid_text
from lanewayd.rpc.audit import audit_filter, audit_message
from lanewayd.rpc.convert import int32, int64, run_state, timestamp
from lanewayd.rpc.interface import Admin, AuditRecords, ServiceStatus
from lanewayd.rpc.limits import Limits
from lanewayd.rpc.methods import Call
from lanewayd.rpc.paging import PageTokens, page_size, read_page


class AdminHandlers:
    """The methods of AdminService under their names in the contract."""

    def __init__(self, *, admin: Admin, audit: AuditRecords, store_id: str, limits: Limits) -> None:
        self._admin = admin
        self._audit = audit
        self._store_id = store_id
        self._limits = limits

    async def GetStatus(self, request: admin_pb2.GetStatusRequest, call: Call) -> admin_pb2.GetStatusResponse:
        return _status_response(await self._admin.status())

    async def ListAuditRecords(
        self, request: admin_pb2.ListAuditRecordsRequest, call: Call
    ) -> admin_pb2.ListAuditRecordsResponse:
        which = audit_filter(request, self._limits)
        size = page_size(request.page_size)
        tokens = PageTokens(request, tenant=call.tenant, store_id=self._store_id)
        start = tokens.place(request.page_token)

        async def read(place: str, limit: int) -> list[AuditRecord]:
            if which is None:
                return []
            before_no = int(place) if place else None
            return list(await self._audit.records(call.tenant, which, before_no=before_no, limit=limit))

        page = await read_page(
            read, start=start, size=size, place_of=lambda record: str(record.ledger_no), convert=audit_message
        )
        return admin_pb2.ListAuditRecordsResponse(records=page.items, next_page_token=tokens.next_token(page))

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
