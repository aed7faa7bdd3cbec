"""Who speaks in a run, and when watchers are told: each change once over the runs of a session (R-4.79)."""

from lanewayd.events import LifecyclePhase
from lanewayd.messages import RunError
from lanewayd.models.candidates import Candidate
from lanewayd.runs.speakers import Speakers
from lanewayd.store.interface import RunChange

ERROR = RunError("PROVIDER_UNAVAILABLE", "no")
FIRST, SECOND, THIRD = (Candidate.of(f"{name}/m") for name in "abc")


def speakers(told: str = "", answered_by: str = "") -> Speakers:
    return Speakers(selected="a/m", answered_by=answered_by, told=told)


def answer(of: Speakers) -> tuple[list[LifecyclePhase], str | None, str | None]:
    """What a whole message announces and keeps: phases, the session's model, the run's."""
    events, change = of.answered(RunChange())
    return [event.phase for event in events], change.fallback_model, change.answered_by


def test_an_answer_of_the_selected_model_says_nothing() -> None:
    each = speakers()
    each.begins(FIRST)
    assert answer(each) == ([], None, None)


def test_a_model_that_takes_over_is_announced_when_it_is_called_and_only_then() -> None:
    each = speakers()
    each.begins(SECOND)
    event = each.takes_over(ERROR)
    assert event is not None
    assert (event.phase, event.provider, event.model, event.error) == (LifecyclePhase.FALLBACK, "b", "m", ERROR)
    assert answer(each) == ([], None, "b/m")
    assert answer(each) == ([], None, None)


def test_each_further_model_is_announced() -> None:
    each = speakers()
    each.begins(SECOND)
    assert each.takes_over(ERROR) is not None
    each.begins(THIRD)
    assert each.takes_over(ERROR) is not None
    assert answer(each) == ([], None, "c/m")


def test_a_later_run_does_not_repeat_what_was_announced() -> None:
    each = speakers(told="c/m")
    for candidate in (SECOND, THIRD):
        each.begins(candidate)
        assert each.takes_over(ERROR) is None
    assert answer(each) == ([], None, "c/m")


def test_a_later_run_that_another_model_answers_announces_it_with_the_answer() -> None:
    each = speakers(told="c/m")
    each.begins(SECOND)
    assert each.takes_over(ERROR) is None
    assert answer(each) == ([LifecyclePhase.FALLBACK], "b/m", "b/m")


def test_the_selected_model_is_announced_as_back_when_it_has_answered_and_can_be_left_again() -> None:
    each = speakers(told="b/m", answered_by="b/m")
    each.begins(FIRST)
    assert answer(each) == ([LifecyclePhase.FALLBACK_CLEARED], "", "")
    each.begins(SECOND)
    assert each.takes_over(ERROR) is not None
