"""providers/hosting.py: who is self-hosted, and how long silence is allowed."""

import pytest

from lanewayd.providers.hosting import idle_limit_s, is_local_host, is_self_hosted


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8000/v1",
        "http://LOCALHOST./v1",
        "http://box.local/v1",
        "http://127.0.0.1/v1",
        "http://127.9.9.9/v1",
        "http://[::1]:9/v1",
        "http://10.1.2.3/v1",
        "http://172.16.0.1/v1",
        "http://192.168.1.9/v1",
        "http://169.254.1.1/v1",
        "http://100.64.0.1/v1",
        "http://[fe80::1]/v1",
        "http://[fd00::1]/v1",
        "http://[::ffff:10.0.0.1]/v1",
    ],
)
def test_local_hosts_are_self_hosted(url: str) -> None:
    assert is_local_host(url)
    assert is_self_hosted(url, "llama")


@pytest.mark.parametrize(
    "url", ["https://api.openai.com/v1", "http://8.8.8.8/", "http://100.128.0.1/", "http://local.example/"]
)
def test_other_hosts_are_cloud_unless_the_settings_say_otherwise(url: str) -> None:
    assert not is_self_hosted(url, "m")
    assert is_self_hosted(url, "m", says_settings=True)


def test_a_local_proxy_for_a_cloud_model_is_cloud() -> None:
    assert not is_self_hosted("http://127.0.0.1:11434/v1", "gpt-oss:120b-cloud")
    assert not is_self_hosted("http://127.0.0.1:11434/v1", "big:cloud")


def test_a_dialect_of_self_hosted_services_makes_one_wherever_it_runs() -> None:
    assert is_self_hosted("https://ollama.example/", "llama3", dialect_is_self_hosted=True)
    assert not is_self_hosted("https://ollama.example/", "gpt-oss:120b-cloud", dialect_is_self_hosted=True)


@pytest.mark.parametrize(
    ("timeout_s", "self_hosted", "cap_s", "limit_s"),
    [
        (None, False, None, 120),
        (None, True, None, 300),
        (600, False, None, 600),
        (5, True, None, 5),
        (None, False, 60, 60),
        (None, False, 9999, 120),
        (600, False, 30, 30),
    ],
)
def test_the_provider_timeout_wins_over_the_default_and_the_budget_caps_both(
    timeout_s: float | None, self_hosted: bool, cap_s: float | None, limit_s: float
) -> None:
    assert idle_limit_s(timeout_s=timeout_s, is_self_hosted=self_hosted, cap_s=cap_s) == limit_s
