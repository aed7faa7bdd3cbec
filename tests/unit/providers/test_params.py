"""Fields that the settings add to a request."""

from lanewayd.providers.params import with_params


def test_what_the_request_says_itself_wins() -> None:
    own = {"a": 1, "options": {"seed": 7, "deep": {"x": 1}}, "list": [1], "off": None}
    params = {"a": 2, "b": 3, "options": {"seed": 8, "num_gpu": 1, "deep": {"x": 2, "y": 3}}, "list": [2], "off": 1}
    assert with_params(own, params) == {
        "a": 1,
        "options": {"seed": 7, "deep": {"x": 1, "y": 3}, "num_gpu": 1},
        "list": [1],
        "off": None,
        "b": 3,
    }


def test_neither_side_is_changed() -> None:
    own, params = {"options": {"seed": 7}}, {"options": {"num_gpu": 1}}
    with_params(own, params)
    assert (own, params) == ({"options": {"seed": 7}}, {"options": {"num_gpu": 1}})
