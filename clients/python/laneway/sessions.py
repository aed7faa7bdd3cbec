"""The calls about sessions and their transcripts; `LanewayClient.sessions` is one of these."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Any

from laneway.calls import Caller
from laneway.errors import LanewayError
from laneway.v1 import agent_pb2, session_pb2

_PIECE_CHARACTERS = 256 * 1024
"""Of a line that is sent in pieces: at most 1 MiB as UTF-8."""


class SessionCalls:
    """Reads, `update` and `fork` are repeated as LanewayClient repeats its own; what ends something is made once."""

    def __init__(self, caller: Caller, stub: Any) -> None:
        self._caller = caller
        self._stub = stub

    async def get(self, session_key: str) -> session_pb2.Session:
        """A session as it stands. Raises NotFound."""
        request = session_pb2.GetSessionRequest(session_key=session_key)
        answer: session_pb2.Session = await self._caller.repeat(self._stub.GetSession, request)
        return answer

    def list(self, *, archived: bool | None = None, pinned: bool | None = None) -> AsyncIterator[session_pb2.Session]:
        """All sessions, those with the newest message first; read page by page while it is iterated. `archived` and
        `pinned`: only those that are so, or are not."""
        request = session_pb2.ListSessionsRequest(archived=archived, pinned=pinned)
        return self._caller.pages(self._stub.ListSessions, request, "sessions")

    async def update(  # noqa: PLR0913 - what can be set of a session
        self,
        session_key: str,
        *,
        model: str | None = None,
        thinking: agent_pb2.ThinkingLevel | None = None,
        verbose: agent_pb2.Verbosity | None = None,
        reasoning: session_pb2.ReasoningVisibility | None = None,
        trace: bool | None = None,
        queue_mode: agent_pb2.QueueMode | None = None,
        label: str | None = None,
        pinned: bool | None = None,
        archived: bool | None = None,
        clear: Iterable[str] = (),
    ) -> session_pb2.Session:
        """Set what is given and clear the fields whose names stand in `clear`; the rest is left. The session as it then
        stands. Counts for the messages accepted from then on. Raises NotFound, InvalidRequest (`field` says which),
        PreconditionFailed. Repeated like a read: the second time it sets the same again."""
        values = {
            "model": model,
            "thinking": thinking,
            "verbose": verbose,
            "reasoning": reasoning,
            "trace": trace,
            "queue_mode": queue_mode,
            "label": label,
            "pinned": pinned,
            "archived": archived,
        }
        given: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        request = session_pb2.UpdateSessionRequest(session=session_pb2.Session(session_key=session_key, **given))
        request.update_mask.paths.extend([*given, *clear])
        answer: session_pb2.Session = await self._caller.repeat(self._stub.UpdateSession, request)
        return answer

    async def reset(
        self, session_key: str, *, force: bool = False, deadline_s: float | None = None
    ) -> session_pb2.ResetSessionResponse:
        """Begin a fresh conversation under the same key. `force` aborts what runs or waits; else that is
        PreconditionFailed (SESSION_ACTIVE). Raises NotFound. Unavailable and DeadlineExceeded leave open whether it
        happened; it is not repeated, because a repetition would abort what came after the first."""
        request = session_pb2.ResetSessionRequest(session_key=session_key, force=force)
        answer: session_pb2.ResetSessionResponse = await self._caller.only_once(
            self._stub.ResetSession, request, deadline_s=deadline_s
        )
        return answer

    async def delete(
        self, session_key: str, *, force: bool = False, deadline_s: float | None = None
    ) -> session_pb2.DeleteSessionResponse:
        """Remove a session with all that is stored of it. `force`, errors and repetition as for `reset`."""
        request = session_pb2.DeleteSessionRequest(session_key=session_key, force=force)
        answer: session_pb2.DeleteSessionResponse = await self._caller.only_once(
            self._stub.DeleteSession, request, deadline_s=deadline_s
        )
        return answer

    async def fork(
        self, session_key: str, *, new_session_key: str, entry_id: str = "", label: str = ""
    ) -> session_pb2.ForkSessionResponse:
        """Make a new session that goes on from an entry of this one; `entry_id` empty means its newest. Raises
        NotFound, InvalidRequest (`new_session_key` when another session has it). Repeated like a read: the second time
        it answers what the first has made, with `duplicate`."""
        request = session_pb2.ForkSessionRequest(
            session_key=session_key, entry_id=entry_id, new_session_key=new_session_key, label=label
        )
        answer: session_pb2.ForkSessionResponse = await self._caller.repeat(self._stub.ForkSession, request)
        return answer

    def entries(self, session_key: str) -> AsyncIterator[session_pb2.Entry]:
        """The transcript, oldest first; long texts are cut (`truncated`) and read whole by `read_entry`. NotFound."""
        request = session_pb2.ListEntriesRequest(session_key=session_key)
        return self._caller.pages(self._stub.ListEntries, request, "entries")

    async def read_entry(self, session_key: str, entry_id: str, *, part: int = 0) -> str:
        """The whole text of one piece of an entry's content. Raises NotFound, InvalidRequest."""
        request = session_pb2.ReadEntryRequest(session_key=session_key, entry_id=entry_id, part=part)
        pieces = []
        while True:
            answer: session_pb2.ReadEntryResponse = await self._caller.repeat(self._stub.ReadEntry, request)
            pieces.append(answer.text)
            if answer.next_offset >= answer.total_bytes or not answer.text:
                return "".join(pieces)
            request.offset = answer.next_offset

    async def export(self, session_key: str) -> AsyncGenerator[str, None]:
        """The transcript as JSON lines without line ends: first a header, then the entries, last
        the end, without which it is not imported again. Raises NotFound.

        It cannot be taken up again: Unavailable or DeadlineExceeded in its middle means to begin anew."""
        request = session_pb2.ExportSessionRequest(session_key=session_key)
        silence_s = self._caller.timeouts.silence_s
        stream = self._caller.stream(self._stub.ExportSession, request, silence_s=silence_s, waits_for_server=True)
        pieces = []
        try:
            while (answer := await stream.next()) is not None:
                pieces.append(answer.line)
                if not answer.line_continues:
                    yield "".join(pieces)
                    pieces.clear()
        finally:
            await stream.close()

    async def import_lines(
        self, lines: Iterable[str], *, session_key: str = "", deadline_s: float = 600.0
    ) -> session_pb2.ImportSessionResponse:
        """Make a new session of the lines of an export, whose next message goes on with that conversation.

        `session_key`: empty means the key in the header. Raises InvalidRequest when there is a session with this key,
        or when a line is bad, which the text names; NotFound for its agent; then nothing was changed. It is made once:
        Unavailable and DeadlineExceeded leave open whether it happened, and InvalidRequest on a repetition tells.
        """
        upload = _Upload(lines, session_key)
        try:
            answer: session_pb2.ImportSessionResponse = await self._caller.only_once(
                self._stub.ImportSession, upload.requests(), deadline_s=deadline_s
            )
        except LanewayError:
            if upload.failure is not None:  # gRPC says only that the call was cancelled
                raise upload.failure from None
            raise
        return answer


class _Upload:
    """The messages of an import."""

    def __init__(self, lines: Iterable[str], session_key: str) -> None:
        self._lines = lines
        self._session_key = session_key
        self.failure: Exception | None = None
        """What the lines raised: then the call was cancelled, and nothing is imported."""

    async def requests(self) -> AsyncIterator[session_pb2.ImportSessionRequest]:
        """Once only."""
        request = session_pb2.ImportSessionRequest(session_key=self._session_key)
        try:
            for line in self._lines:
                for start in range(0, max(len(line), 1), _PIECE_CHARACTERS):
                    request.line = line[start : start + _PIECE_CHARACTERS]
                    request.line_continues = start + _PIECE_CHARACTERS < len(line)
                    yield request
                    request = session_pb2.ImportSessionRequest()
        except Exception as error:
            self.failure = error
            raise
