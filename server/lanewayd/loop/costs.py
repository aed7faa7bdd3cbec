"""What a model call used and cost, once it has ended. Pure. Source: spec 08, R-8.75 to R-8.77."""

from dataclasses import replace

from lanewayd.errors import ErrorCode
from lanewayd.messages import Prices, Usage
from lanewayd.models.costs import priced
from lanewayd.providers.interface import Done, Failed


def with_cost(outcome: Done | Failed, prices: Prices) -> Done | Failed:
    """`outcome` with the cost of its usage. A refused request used nothing; a stream that broke off before it was said
    leaves the usage unavailable."""
    if isinstance(outcome, Done):
        return replace(outcome, message=replace(outcome.message, usage=priced(outcome.message.usage, prices)))
    usage = Usage() if _was_refused(outcome) else priced(outcome.partial.usage, prices)
    return replace(outcome, partial=replace(outcome.partial, usage=usage))


def _was_refused(failed: Failed) -> bool:
    """No answer was begun: there was no connection, or the response was an error."""
    if failed.partial.content or failed.partial.usage.total_tokens:
        return False
    return failed.error.http_status >= _FIRST_ERROR_STATUS or failed.error.reason in _BEFORE_ANY_ANSWER


_FIRST_ERROR_STATUS = 400
_BEFORE_ANY_ANSWER = (ErrorCode.PROVIDER_UNREACHABLE.value,)
