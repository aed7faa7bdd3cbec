"""Answers that must fit a schema: what a model is told, and what becomes of an answer that does not fit.

The decisions are pure, but for the thread that an answer is checked in.
"""

import asyncio
import json
from dataclasses import replace

from lanewayd.errors import ErrorCode
from lanewayd.loop.answer_schema import AnswerSchema
from lanewayd.messages import AssistantMessage, Message, RunError, StopReason, UserMessage
from lanewayd.providers.interface import ModelRequest, Provider

MAX_CORRECTIONS = 2
"""Further calls for an answer that does not fit; restarts do not give new ones."""


class AnswerJudge:
    """Judges the final answers of one run. Owner of what the next call is told beside the transcript."""

    def __init__(self, schema: AnswerSchema | None, *, corrections: int = 0) -> None:
        """`schema` None: every answer is good. `corrections`: made by earlier dispatches of the run."""
        self._schema = schema
        self._corrections = corrections
        self.aside: tuple[Message, ...] = ()
        """Ends the next request: the answer that did not fit, and why. It is no part of the transcript."""

    @property
    def tries(self) -> int:
        """How many answers did not fit, or would not have: the coming one is number `tries` + 1."""
        return self._corrections

    async def problem(self, message: AssistantMessage) -> RunError | None:
        """Why `message` is not the answer; None if it is, or asks for tools. `aside` follows."""
        self.aside = ()
        if self._schema is None or message.tool_calls:
            return None
        # In a thread: a large answer is checked for a while, and the schema is the caller's.
        refused = await asyncio.to_thread(self._schema.check, message.text)
        if refused is None:
            return None
        problems = refused.problems
        if message.stop_reason is StopReason.LENGTH:
            problems = (*problems, "it was cut by the limit of output tokens: it must be shorter")
        self.aside = _correction(message, problems)
        return RunError(
            ErrorCode.OUTPUT_SCHEMA_MISMATCH.value,
            f"the answer does not fit the response_schema: {'; '.join(problems)}",
            provider=message.provider,
            model=message.model,
        )

    def may_correct(self) -> bool:
        """Whether another call may be made for the answer; counts it."""
        if self._corrections == MAX_CORRECTIONS:
            return False
        self._corrections += 1
        return True


def asking_for_schema(request: ModelRequest, provider: Provider) -> ModelRequest:
    """`request`, with an instruction if its schema would reach the model in no other way."""
    schema = request.response_schema
    if schema is None or provider.has_native_schema(request):
        return request
    instruction = (
        "Your final answer must be one JSON object that fits this JSON Schema, with nothing before or after it:\n"
        + json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    )
    return replace(request, system=f"{request.system}\n\n{instruction}" if request.system else instruction)


def _correction(message: AssistantMessage, problems: tuple[str, ...]) -> tuple[Message, ...]:
    lines = "\n".join(f"- {problem}" for problem in problems)
    said = UserMessage(
        f"Your last answer cannot be used:\n{lines}\n\n"
        "Answer again, with one JSON object that fits the schema and nothing else. Do not repeat what your tools have"
        " done already."
    )
    return (message, said) if message.content else (said,)
