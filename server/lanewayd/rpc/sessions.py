"""SessionService: check, call the service, convert."""

from collections.abc import AsyncIterator
from datetime import datetime

from laneway.v1 import session_pb2
from lanewayd.records import Entry, Session, SessionFilter
from lanewayd.rpc.entry_convert import entry_message, read_piece
from lanewayd.rpc.imports import ImportSlots, import_lines
from lanewayd.rpc.interface import Sessions
from lanewayd.rpc.limits import MAX_PIECE_BYTES, Limits
from lanewayd.rpc.methods import Call, Send
from lanewayd.rpc.paging import PageTokens, page_size, read_page
from lanewayd.rpc.request_fields import check_session_key, check_size, required, required_session_key
from lanewayd.rpc.run_convert import session_message
from lanewayd.rpc.session_update import session_patch
from lanewayd.rpc.streams import closed_at_the_end
from lanewayd.rpc.wire_text import pieces


class SessionHandlers:
    """The methods of SessionService under their names in the contract."""

    def __init__(self, *, sessions: Sessions, store_id: str, limits: Limits) -> None:
        self._sessions = sessions
        self._store_id = store_id
        self._limits = limits
        self._import_slots = ImportSlots(limits.open_imports)

    async def GetSession(self, request: session_pb2.GetSessionRequest, call: Call) -> session_pb2.Session:
        return session_message(await self._sessions.get(call.tenant, self._key(request.session_key)))

    async def ListSessions(
        self, request: session_pb2.ListSessionsRequest, call: Call
    ) -> session_pb2.ListSessionsResponse:
        which = SessionFilter(
            archived=request.archived if request.HasField("archived") else None,
            pinned=request.pinned if request.HasField("pinned") else None,
        )

        async def read(place: str, limit: int) -> list[Session]:
            before = _session_place(place) if place else None
            return list(await self._sessions.list(call.tenant, which, before=before, limit=limit))

        tokens = PageTokens(request, tenant=call.tenant, store_id=self._store_id)
        page = await read_page(
            read,
            start=tokens.place(request.page_token),
            size=page_size(request.page_size),
            place_of=_place_of_session,
            convert=session_message,
        )
        return session_pb2.ListSessionsResponse(sessions=page.items, next_page_token=tokens.next_token(page))

    async def UpdateSession(self, request: session_pb2.UpdateSessionRequest, call: Call) -> session_pb2.Session:
        key = self._key(request.session.session_key)
        return session_message(await self._sessions.update(call.tenant, key, session_patch(request, self._limits)))

    async def ResetSession(
        self, request: session_pb2.ResetSessionRequest, call: Call
    ) -> session_pb2.ResetSessionResponse:
        key = self._key(request.session_key)
        _, aborted = await self._sessions.reset(call.tenant, key, force=request.force)
        return session_pb2.ResetSessionResponse(aborted_run_ids=aborted)

    async def DeleteSession(
        self, request: session_pb2.DeleteSessionRequest, call: Call
    ) -> session_pb2.DeleteSessionResponse:
        key = self._key(request.session_key)
        aborted = await self._sessions.delete(call.tenant, key, force=request.force)
        return session_pb2.DeleteSessionResponse(aborted_run_ids=aborted)

    async def ForkSession(self, request: session_pb2.ForkSessionRequest, call: Call) -> session_pb2.ForkSessionResponse:
        key = self._key(request.session_key)
        check_session_key(request.new_session_key, self._limits, field="new_session_key")
        for field in ("entry_id", "label"):
            check_size(getattr(request, field), field, self._limits.name_bytes)
        session, entries, is_duplicate = await self._sessions.fork(
            call.tenant,
            key,
            entry_id=request.entry_id,
            new_session_key=request.new_session_key,
            label=request.label,
        )
        return session_pb2.ForkSessionResponse(
            session=session_message(session), entries=entries, duplicate=is_duplicate
        )

    async def ListEntries(self, request: session_pb2.ListEntriesRequest, call: Call) -> session_pb2.ListEntriesResponse:
        key = self._key(request.session_key)

        async def read(place: str, limit: int) -> list[tuple[int, Entry]]:
            after_no = int(place) if place else 0
            return list(await self._sessions.entries(call.tenant, key, after_no=after_no, limit=limit))

        tokens = PageTokens(request, tenant=call.tenant, store_id=self._store_id)
        page = await read_page(
            read,
            start=tokens.place(request.page_token),
            size=page_size(request.page_size),
            place_of=lambda row: str(row[0]),
            convert=lambda row: entry_message(row[1]),
        )
        return session_pb2.ListEntriesResponse(entries=page.items, next_page_token=tokens.next_token(page))

    async def ReadEntry(self, request: session_pb2.ReadEntryRequest, call: Call) -> session_pb2.ReadEntryResponse:
        key = self._key(request.session_key)
        entry = await self._sessions.entry(call.tenant, key, required(request.entry_id, "entry_id"))
        return read_piece(entry, part=request.part, offset=request.offset)

    async def ExportSession(self, request: session_pb2.ExportSessionRequest, call: Call, send: Send) -> None:
        lines = self._sessions.export(call.tenant, self._key(request.session_key))
        async with closed_at_the_end(lines):
            async for line in lines:
                *head, tail = pieces(line, MAX_PIECE_BYTES)
                for piece in head:
                    await send(_line(piece, line_continues=True))
                await send(_line(tail, line_continues=False))

    async def ImportSession(
        self, requests: AsyncIterator[session_pb2.ImportSessionRequest], call: Call
    ) -> session_pb2.ImportSessionResponse:
        with self._import_slots.taken(call.tenant):
            first = await anext(requests, session_pb2.ImportSessionRequest())
            check_session_key(first.session_key, self._limits)
            lines = import_lines(first, requests, self._limits)
            async with closed_at_the_end(lines):
                session, entries = await self._sessions.import_session(call.tenant, first.session_key, lines)
        return session_pb2.ImportSessionResponse(session=session_message(session), entries=entries)

    def _key(self, session_key: str) -> str:
        return required_session_key(session_key, self._limits)


def _line(text: str, *, line_continues: bool) -> bytes:
    return session_pb2.ExportSessionResponse(line=text, line_continues=line_continues).SerializeToString()


def _place_of_session(session: Session) -> str:
    return f"{session.last_interaction_at.isoformat()} {session.session_key}"


def _session_place(place: str) -> tuple[datetime, str]:
    moment, _, session_key = place.partition(" ")
    return datetime.fromisoformat(moment), session_key
