"""Answers of the model service that several groups use, and what it was asked."""

import asyncio

from tests.fakes.model_answers import Answer, text_answer
from tests.fakes.model_server import ModelServer


def held(release: asyncio.Event, text: str = "ok") -> Answer:
    """An answer that comes when the test says so."""
    answer = text_answer(text)
    return Answer(answer.steps, before=release)


def never() -> Answer:
    """No answer at all."""
    return Answer(before=asyncio.Event())


def said(model: ModelServer) -> list[str]:
    """The last user message of each request, in order."""
    return [
        [message["content"] for message in request.messages if message["role"] == "user"][-1]
        for request in model.requests
    ]
