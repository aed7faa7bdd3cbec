"""Turn and time limits of a run. Pure."""

from lanewayd.errors import ErrorCode
from lanewayd.messages import RunError


def turn_cap_error(turns: int, max_turns: int) -> RunError | None:
    """The error that ends a run which made `turns` model calls and wants another; None while it may. 0 = no limit."""
    if max_turns == 0 or turns < max_turns:
        return None
    return RunError(
        ErrorCode.MAX_TURNS.value,
        f"the run made {turns} model calls, as many as max_turns allows, and the model asked for more; "
        "raise max_turns or ask for less",
    )


def no_tools_error() -> RunError:
    """The error that ends a run whose allow list leaves it no tool."""
    return RunError(
        ErrorCode.TOOLS_EMPTY.value,
        "tools_allow and tools_deny leave no tool that exists; name existing tools, or leave tools_allow empty for all",
    )


def remaining_budget_s(timeout_s: float, used_s: float) -> float | None:
    """Seconds a run may still be RUNNING; None = no deadline. Never negative."""
    return None if timeout_s == 0 else max(0.0, timeout_s - used_s)
