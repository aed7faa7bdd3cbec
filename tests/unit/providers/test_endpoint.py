"""Where requests go."""

import pytest

from lanewayd.providers.endpoint import address, bearer


@pytest.mark.parametrize(
    ("base_url", "path", "expected"),
    [
        ("http://h", "/v1/messages", "http://h/v1/messages"),
        ("http://h/v1/", "/v1/messages", "http://h/v1/messages"),
        ("http://h/v10", "/v1/messages", "http://h/v10/v1/messages"),
        ("http://h/v1", "/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/models", "/models", "http://h/models/models"),
        ("http://h/v1beta", "/models/m:stream?alt=sse", "http://h/v1beta/models/m:stream?alt=sse"),
    ],
)
def test_a_version_that_the_base_names_already_is_not_repeated(base_url: str, path: str, expected: str) -> None:
    assert address(base_url, path) == expected


def test_without_a_key_no_key_is_sent() -> None:
    assert bearer("k") == {"authorization": "Bearer k"}
    assert bearer("") == {}
