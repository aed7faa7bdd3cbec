"""What a run tried of its chain, and the one error that tells it (R-4.77). Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lanewayd.messages import FailureClass, RunError
from lanewayd.models.candidates import Candidate
from lanewayd.models.interface import Cooling
from lanewayd.providers.interface import Failed, reason_of

MAX_TOLD = 8


@dataclass(frozen=True, slots=True)
class Tried:
    """One call that failed, or a model that was skipped."""

    candidate: Candidate
    kind: FailureClass
    error: RunError
    profile: str = ""
    was_called: bool = False

    @classmethod
    def of(cls, failed: Failed, candidate: Candidate, profile: str) -> "Tried":
        """A failed call."""
        return cls(candidate, failed.kind, failed.error, profile, was_called=True)

    def __str__(self) -> str:
        status = f", HTTP {self.error.http_status}" if self.error.http_status else ""
        key = f" with {self.profile}" if self.profile else ""
        how = "" if self.was_called else ", not called"
        return f"{self.candidate.reference}{key}: {self.kind.value} ({self.error.reason}{status}{how})"


def skipped(candidate: Candidate, cooling: Cooling) -> Tried:
    """A model that is not called, as all credentials of its provider are cooling down."""
    reason = reason_of(cooling.kind)
    message = (
        f"{candidate.provider}, model {candidate.model}: not called, as its credentials are cooling down after"
        f" {cooling.kind.value}; the first can be used again in {cooling.ends_in_s:.0f} s"
    )
    error = RunError(reason.value, message, candidate.provider, candidate.model, retryable=True)
    return Tried(candidate, cooling.kind, error, cooling.profile)


def chain_error(tried: Sequence[Tried], last: RunError | None, *, soonest_s: float | None) -> RunError:
    """`last`, or what kept the last model from being called; with all that was tried when there was more than that.

    `soonest_s`: when the first credential of the chain can be used again.
    """
    error = last or tried[-1].error
    if len({each.candidate.reference for each in tried}) > 1:
        # What is said for several times in a row is said once.
        told = list(dict.fromkeys(map(str, tried)))
        dots = "... " if len(told) > MAX_TOLD else ""
        message = f"{error.message} All models of the chain failed: {dots}{'; '.join(told[-MAX_TOLD:])}."
        error = replace(error, message=message)
    if soonest_s is not None and last is not None:
        error = replace(error, message=f"{error.message} A credential can be used again in {soonest_s:.0f} s.")
    return error
