"""Models that play a script: for demonstrations, tests of clients and tests of the service itself."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lanewayd.clock import Clock
from lanewayd.errors import ErrorCode
from lanewayd.messages import (
    SCRIPTED_PROVIDER,
    AssistantBlock,
    AssistantMessage,
    Reasoning,
    RunError,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    valid_text,
)
from lanewayd.providers.call_ids import CallIdFactory, CallIds
from lanewayd.providers.interface import (
    EVENTS_PER_LOOP_TURN,
    BlockEnded,
    Done,
    Failed,
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
)
from lanewayd.providers.scripts import ScriptedCall, ScriptError, Turn, parse_script

_LEGAL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_MAX_KNOWN_SCRIPTS = 64


class ScriptedProvider:
    """Model `<name>` plays `<scripts_dir>/<name>.yaml`. Stateless: the request alone says which turn comes.

    The script is a mapping with one field, `turns`, a list; turn n answers the request that has n answers behind its
    last user message. After the last turn that turn is played again if it calls no tools. A turn has, all optional:

    - `text`: a text, or a list of texts, one delta each
    - `reasoning`: the same, played before the text
    - `repeat`: how often text and reasoning are played, each (1)
    - `delay_s`: waited before each delta (0)
    - `tool_calls`: a list of `{name, arguments, id}`; ids are made up where missing or used before in the session
    - `stop`: `stop`, `length` or `tool_use` (`tool_use` with calls, else `stop`); `length` drops the calls
    - `usage`: `{input_tokens, output_tokens}`
    - `error`: `{reason, message, http_status, transient, retry_after_s}`; the turn fails after its text

    In texts, `${message}` stands for the last user message and `${tool_result}` for the last tool result behind it.
    A script is read again when its file has changed. Owns one thread, for files; `close` ends it.
    """

    def __init__(
        self, *, scripts_dir: Path, clock: Clock, new_call_id: CallIdFactory, name: str = SCRIPTED_PROVIDER
    ) -> None:
        self._scripts_dir = scripts_dir
        self._clock = clock
        self._new_call_id = new_call_id
        self._name = name
        self._files = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scripts")
        # By file name: size and time of change, and the turns. Only the thread touches it.
        self._known: dict[str, tuple[tuple[int, int], tuple[Turn, ...]]] = {}

    @property
    def name(self) -> str:
        return self._name

    def has_native_schema(self, request: ModelRequest) -> bool:
        return False

    async def close(self) -> None:
        self._files.shutdown(wait=False, cancel_futures=True)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        try:
            turns = await asyncio.get_running_loop().run_in_executor(self._files, self._read, request.model)
            turn = _turn_to_play(turns, request, f"{request.model}.yaml")
        except _Unplayable as unplayable:
            yield self._failed(request, RunError(unplayable.reason.value, str(unplayable)), ())
            return
        placeholders = _Placeholders(request)
        blocks: list[AssistantBlock] = []
        played = 0
        for chunks, is_reasoning in ((turn.reasoning, True), (turn.chunks, False)):
            texts: list[str] = []
            delta = ReasoningDelta if is_reasoning else TextDelta
            for chunk in (placeholders.fill(chunk) for _ in range(turn.repeat) for chunk in chunks):
                if turn.delay_s:
                    await self._clock.sleep(turn.delay_s)
                if not chunk:
                    continue
                texts.append(chunk)
                yield delta(len(blocks), chunk)
                # Without a delay nothing here would ever let other work run.
                if played % EVENTS_PER_LOOP_TURN == 0:
                    await asyncio.sleep(0)
                played += 1
            if texts:
                blocks.append(Reasoning("".join(texts)) if is_reasoning else Text("".join(texts)))
                yield BlockEnded(len(blocks) - 1)
        if turn.error is not None:
            error = RunError(turn.error.reason.value, turn.error.message, http_status=turn.error.http_status)
            failed = self._failed(request, error, tuple(blocks), is_transient=turn.error.is_transient)
            yield Failed(failed.error, failed.partial, turn.error.retry_after_s, failed.is_transient)
            return
        if turn.stop_reason is not StopReason.LENGTH:
            blocks += _calls(turn.calls, placeholders, CallIds(request.messages, self._new_call_id))
        yield Done(self._message(request, tuple(blocks), turn.stop_reason, turn.usage))

    def _read(self, model: str) -> tuple[Turn, ...]:
        """The turns of a model's script. Runs in the thread. Raises _Unplayable."""
        if not _LEGAL_NAME.fullmatch(model) or ".." in model:
            what = f"scripted model {model!r}: a name has letters, digits, '_', '-' and '.' only"
            raise _Unplayable(ErrorCode.PROVIDER_MODEL_NOT_FOUND, what)
        path = self._scripts_dir / f"{model}.yaml"
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._known.get(model)
            if known is not None and known[0] == stamp:
                return known[1]
            turns = parse_script(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            what = (
                f"scripted model {model}: there is no file {path}. Write it; the format is in docs/scripted-models.md."
            )
            raise _Unplayable(ErrorCode.PROVIDER_MODEL_NOT_FOUND, what) from None
        except OSError as error:
            what = f"scripted model {model}: {path} cannot be read: {error.strerror}"
            raise _Unplayable(ErrorCode.PROVIDER_MODEL_NOT_FOUND, what) from error
        except (ScriptError, UnicodeDecodeError) as error:
            raise _Unplayable(ErrorCode.PROVIDER_BAD_RESPONSE, f"scripted model {model}: {path}: {error}") from error
        if len(self._known) >= _MAX_KNOWN_SCRIPTS:
            self._known.clear()
        self._known[model] = (stamp, turns)
        return turns

    def _failed(
        self, request: ModelRequest, error: RunError, blocks: tuple[AssistantBlock, ...], *, is_transient: bool = False
    ) -> Failed:
        named = RunError(
            error.reason, error.message, self._name, request.model, error.http_status, retryable=is_transient
        )
        return Failed(named, self._message(request, blocks, StopReason.ERROR, Usage()), is_transient=is_transient)

    def _message(
        self, request: ModelRequest, blocks: tuple[AssistantBlock, ...], stop_reason: StopReason, usage: Usage
    ) -> AssistantMessage:
        return AssistantMessage(blocks, self._name, request.model, stop_reason, usage, stop_reason.value)


class _Unplayable(Exception):
    """No turn can be played; the text says why."""

    def __init__(self, reason: ErrorCode, what: str) -> None:
        super().__init__(what)
        self.reason = reason


class _Placeholders:
    """What `${message}` and `${tool_result}` stand for in one request."""

    def __init__(self, request: ModelRequest) -> None:
        message = tool_result = ""
        for item in request.messages:
            if isinstance(item, UserMessage):
                message, tool_result = item.text, ""
            elif isinstance(item, ToolResultMessage):
                tool_result = item.text
        self._values = {"${message}": valid_text(message), "${tool_result}": valid_text(tool_result)}
        self._pattern = re.compile("|".join(map(re.escape, self._values)))

    def fill(self, text: str) -> str:
        """`text` with its placeholders filled in, in one pass: what they stand for is not searched again."""
        return self._pattern.sub(lambda found: self._values[found.group()], text)

    def fill_all(self, value: Any) -> Any:
        """The same for every text in `value`."""
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, list):
            return [self.fill_all(item) for item in value]
        if isinstance(value, dict):
            return {key: self.fill_all(item) for key, item in value.items()}
        return value


def _turn_to_play(turns: tuple[Turn, ...], request: ModelRequest, file_name: str) -> Turn:
    """The turn for a request. Raises _Unplayable past the last one if that calls tools."""
    answers = 0
    for message in request.messages:
        if isinstance(message, UserMessage):
            answers = 0
        elif isinstance(message, AssistantMessage) and message.stop_reason not in (
            StopReason.ERROR,
            StopReason.ABORTED,
        ):
            answers += 1
    if answers < len(turns):
        return turns[answers]
    if turns[-1].calls:
        what = f"{file_name} has {len(turns)} turns and turn {answers + 1} was asked for: end it with one without calls"
        raise _Unplayable(ErrorCode.PROVIDER_BAD_RESPONSE, what)
    return turns[-1]


def _calls(calls: tuple[ScriptedCall, ...], placeholders: _Placeholders, ids: CallIds) -> list[ToolCall]:
    return [
        ToolCall(
            ids.claim(placeholders.fill(call.call_id)),
            call.name,
            json.dumps(placeholders.fill_all(call.arguments), ensure_ascii=False),
        )
        for call in calls
    ]
