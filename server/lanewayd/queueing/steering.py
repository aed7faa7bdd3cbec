"""Which message may go into a run that is at work. Pure. Source: spec 02, R-2.68, R-2.70; spec 05, R-5.33."""

from lanewayd.queueing.options import options_of
from lanewayd.records import RunRequest


def can_join(host: RunRequest, message: RunRequest) -> bool:
    """Whether the run of `host` can take `message` in: it works with what it has, so the message may ask for nothing
    else, neither tools nor model nor an answer of its own form, and must come the same way. The limits of time and
    turns that it names go with the run of its own that it does not become."""
    is_plain = not message.response_schema_json and not message.begins_anew
    return is_plain and options_of(host) == options_of(message)
