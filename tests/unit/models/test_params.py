"""The params of requests: which layer decides."""

from lanewayd.models.params import ModelParams, params_of


def test_the_last_layer_that_has_a_name_decides() -> None:
    params = params_of({"top_p": 0.1, "a": 1}, {"top_p": 0.2, "route": {"x": 1}}, {"route": {"y": 2}})
    assert params == ModelParams(fields={"top_p": 0.2, "a": 1, "route": {"y": 2}})


def test_the_contracts_own_words_are_no_fields_of_a_body() -> None:
    params = params_of({"temperature": 0, "seed": 1}, {"max_output_tokens": 5})
    assert params == ModelParams(temperature=0, max_output_tokens=5, seed=1)


def test_without_layers_nothing_is_said() -> None:
    assert params_of({}, {}, {}) == ModelParams()
