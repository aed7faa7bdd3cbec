"""The settings and the wiring know the same languages."""

from lanewayd.settings_schema import APIS, LANDED_APIS
from lanewayd.wiring.dialects import make_dialect


def test_every_api_that_the_settings_take_has_a_language() -> None:
    for api in LANDED_APIS:
        dialect = make_dialect(api, provider="acme")
        assert dialect.models_path.startswith("/")
    assert set(LANDED_APIS) <= set(APIS)
