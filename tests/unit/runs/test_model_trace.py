"""What a run with trace tells of its models: a line where something is decided, none where all goes on as before."""

from lanewayd.messages import RunError, ThinkingLevel
from lanewayd.models.candidates import Candidate
from lanewayd.records import Priority, RunRequest
from lanewayd.runs.model_trace import ModelTrace

REQUEST = RunRequest("hi", "main", "", Priority.FOREGROUND, "acme/a", 60, model_source="session")
FAILED = RunError("PROVIDER_RATE_LIMITED", "a text that nobody shall read here")


def test_each_decision_has_its_line() -> None:
    trace = ModelTrace(REQUEST)
    first = Candidate("acme", "a", thinking=ThinkingLevel.HIGH)
    assert trace.line(first, None) == "acme/a (source: session), thinking high"
    assert trace.line(first, None) == ""
    assert trace.line(first, FAILED) == "acme/a again after PROVIDER_RATE_LIMITED"
    assert trace.line(Candidate("acme", "b"), FAILED) == "acme/b instead of acme/a after PROVIDER_RATE_LIMITED"
    assert trace.line(Candidate("acme", "b"), None) == ""


def test_a_first_model_that_is_not_the_first_of_the_chain_says_why() -> None:
    assert ModelTrace(REQUEST).line(Candidate("acme", "b"), FAILED) == "acme/b first, after PROVIDER_RATE_LIMITED"
