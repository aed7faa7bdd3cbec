import json

import pytest

from lanewayd.tools.redaction import Redactor

KEY = "correct-horse-battery"
REDACTOR = Redactor([KEY, KEY + "-longer", "ab", ""])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"key={KEY};", "key=[redacted];"),
        (f"key={KEY}-longer;", "key=[redacted];"),
        ("ab stays", "ab stays"),
        ("sk-proj-abcdefghijklmnop1234 x", "[redacted] x"),
        ("Authorization: Bearer abcdefghijklmnop1234", "Authorization: Bearer [redacted]"),
        ("ghp_" + "a" * 36, "[redacted]"),
        ("AKIAABCDEFGHIJKLMNOP", "[redacted]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nx", "[redacted]\nx"),
        ("see data:image/png;base64," + "A" * 100 + " there", "see [data URI, 122 characters] there"),
        ("risk-averse sk-short Bearer of news", "risk-averse sk-short Bearer of news"),
        ("commit 2ce04f0a89b258ec76d51bb1f37e3235cda0000", "commit 2ce04f0a89b258ec76d51bb1f37e3235cda0000"),
    ],
)
def test_secrets_go_and_the_rest_stays(text: str, shown: str) -> None:
    assert REDACTOR.shown(text) == shown


def test_a_text_is_cut_after_it_was_redacted() -> None:
    shown = REDACTOR.shown("x" * 7_995 + KEY + "y" * 1_000)
    assert shown.startswith("x" * 7_995 + "[reda\n[... 1005 characters more]")
    assert REDACTOR.shown("x" * 8_000) == "x" * 8_000


def test_arguments_are_redacted_deeply_and_stay_json() -> None:
    arguments = {
        "command": f"curl -H 'Authorization: Bearer {KEY}'",
        "env": {"apiKey": "anything", "OPENAI_API_KEY": "short", KEY: 1},
        "list": [{"password": "p"}, "data:text/plain;base64," + "B" * 50],
        "large": 9007199254740993,
        "long": "z" * 9_000,
    }
    shown = json.loads(REDACTOR.arguments_json(json.dumps(arguments)))
    assert shown["command"] == "curl -H 'Authorization: Bearer [redacted]'"
    assert shown["env"] == {"apiKey": "[redacted]", "OPENAI_API_KEY": "[redacted]", "[redacted]": 1}
    assert shown["list"] == [{"password": "[redacted]"}, "[data URI, 73 characters]"]
    assert shown["large"] == 9007199254740993
    assert len(shown["long"]) < 8_100


def test_a_secret_that_json_writes_with_escapes_is_found() -> None:
    redactor = Redactor(['quo"ted\\secret'])
    assert json.loads(redactor.arguments_json(json.dumps({"a": 'x quo"ted\\secret'}))) == {"a": "x [redacted]"}


def test_harmless_arguments_keep_their_very_text() -> None:
    text = '{ "a":1.0,\n"b" : "\\u00e4" }'
    assert REDACTOR.arguments_json(text) == text


def test_arguments_that_are_no_json_are_treated_as_text() -> None:
    assert REDACTOR.arguments_json('{"a": "' + KEY) == '{"a": "[redacted]'
    REDACTOR.arguments_json("[" * 100_000)


def test_copies_are_valid_text() -> None:
    assert REDACTOR.shown("a\ud83d") == "a\ufffd"
    REDACTOR.arguments_json('{"a": "\\ud83d"}').encode()
