"""What a run with trace tells of its models: which one is called and why, and what takes over. Pure."""

from lanewayd.messages import RunError
from lanewayd.models.candidates import Candidate
from lanewayd.records import RunRequest

SOURCE = "models"


class ModelTrace:
    """Knows which model was called last. No text of a prompt, an answer or a service stands in its lines."""

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._last = ""

    def line(self, candidate: Candidate, instead_of: RunError | None) -> str:
        """About a call that begins; "" when nothing about it was decided anew."""
        before, self._last = self._last, candidate.reference
        if not before and instead_of is None:
            thinking = f", thinking {candidate.thinking.value}" if candidate.thinking is not None else ""
            return f"{candidate.reference} (source: {self._request.model_source or 'request'}){thinking}"
        if instead_of is None:
            return ""
        if not before:
            return f"{candidate.reference} first, after {instead_of.reason}"
        if before == candidate.reference:
            return f"{candidate.reference} again after {instead_of.reason}"
        return f"{candidate.reference} instead of {before} after {instead_of.reason}"
