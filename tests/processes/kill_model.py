"""A model for kill tests: every answer is unique, and what was sent for which turn of which message is remembered.

It sees one run at a time per session, or says so in `overlaps`.
"""

import json
import random
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.model_answers import DONE, Answer, calls_answer, delta, event
from tests.fakes.model_server import ModelServer, RecordedRequest

Turn = tuple[str, int]
"""(message, number of the model call in its run)"""

_WORDS = ("lane", "café", "漢字", "run ", "🙂", "\n", "seq", " - ", "Grüße", "x" * 40)


@dataclass(frozen=True, slots=True)
class Script:
    """What a message makes the model do: `rounds` answers with `calls` calls each, then an answer of text only."""

    rounds: int = 1
    calls: int = 1
    tool: str = "ledger"
    pieces: int = 6
    pace_s: float = 0.0


@dataclass
class _Sent:
    text: str
    tokens: list[str] = field(default_factory=list)


class KillModel(ModelServer):
    """Messages are `<session> <number>`, one line; give the script of a message in `scripts` before it is sent. Of
    messages that were collected the last one's holds."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self.scripts: dict[str, Script] = {}
        self.sent: dict[Turn, list[_Sent]] = defaultdict(list)
        self.generation = 0
        """Number of the server's start, given by the test: runs of a killed process do not overlap with later ones."""
        self.overlaps: list[str] = []
        self._in_flight: dict[str, tuple[int, str, RecordedRequest]] = {}

    @property
    def tokens_of_tool(self) -> dict[str, str]:
        """Token -> tool of all calls that were ever asked for."""
        return {
            token: self.scripts[message].tool
            for (message, _), attempts in self.sent.items()
            for sent in attempts
            for token in sent.tokens
        }

    def _answer_for(self, request: RecordedRequest) -> Answer:
        message, turn = _place(request.messages)
        script = self.scripts[message]
        self._check_alone(message, request)
        attempts = self.sent[message, turn]
        pieces = [f"[{message} turn {turn} try {len(attempts)}] "]
        pieces += self._random.choices(_WORDS, k=script.pieces)
        sent = _Sent("".join(pieces))
        attempts.append(sent)
        steps: list[Any] = []
        for piece in pieces:
            steps.append(delta(content=piece))
            if script.pace_s:
                steps.append(script.pace_s)
        if turn < script.rounds:
            sent.tokens = [uuid.uuid4().hex for _ in range(script.calls)]
            calls = calls_answer(*((script.tool, {"token": token}) for token in sent.tokens))
            return Answer([*steps, *calls.steps])
        usage = {"prompt_tokens": 10, "completion_tokens": len(pieces), "total_tokens": 10 + len(pieces)}
        return Answer([*steps, delta("stop"), event(id="c", choices=[], usage=usage), DONE])

    def _check_alone(self, message: str, request: RecordedRequest) -> None:
        session = message.partition(" ")[0]
        before = self._in_flight.get(session)
        if before is not None:
            generation, other, earlier = before
            if generation == self.generation and other != message and not earlier.is_over:
                self.overlaps.append(f"{message} began during {other}")
        self._in_flight[session] = (self.generation, message, request)


def _place(messages: list[dict[str, Any]]) -> Turn:
    """The last user message, and how many answers stand behind it."""
    at = max(index for index, message in enumerate(messages) if message["role"] == "user")
    content = messages[at]["content"]
    text = content if isinstance(content, str) else json.loads(json.dumps(content))[0]["text"]
    return last_said(text), sum(message["role"] == "assistant" for message in messages[at:])


def last_said(text: str) -> str:
    """The last message in what a user says in a run."""
    return text.rpartition("\n")[2]
