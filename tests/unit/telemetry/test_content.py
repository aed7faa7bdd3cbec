"""Content in spans: redacted first, then cut; of a long conversation the newest part."""

import json

from lanewayd.telemetry.content import MAX_CONTENT_CHARS, Content
from lanewayd.tools.redaction import Redactor

REDACTOR = Redactor(["canary-key"])
CONTENT = Content(REDACTOR.shown, REDACTOR.arguments_json)


def test_secrets_are_taken_out_of_every_text() -> None:
    shown = CONTENT.newest([{"role": "user", "parts": [{"type": "text", "content": "use canary-key"}], "count": 1}])
    assert "canary-key" not in shown
    assert json.loads(shown)[0]["parts"][0]["content"] == "use [redacted]"
    assert "canary-key" not in CONTENT.text("canary-key") + CONTENT.arguments('{"a": "canary-key"}')


def test_the_newest_items_are_kept_in_their_order() -> None:
    items = [{"number": number, "text": "x" * 5_000} for number in range(20)]
    shown = CONTENT.newest(items)
    assert len(shown) <= MAX_CONTENT_CHARS
    numbers = [item["number"] for item in json.loads(shown)]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 19
    assert len(numbers) == 6


def test_every_attribute_has_a_limit() -> None:
    assert json.loads(CONTENT.newest([])) == []
    assert len(CONTENT.text("x" * 99_999)) <= MAX_CONTENT_CHARS
    assert len(CONTENT.arguments(json.dumps({str(key): "x" * 7_000 for key in range(99)}))) <= MAX_CONTENT_CHARS
