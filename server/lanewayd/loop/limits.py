"""Limits of a run: turns, tokens, cost, time. Pure."""

from dataclasses import dataclass, field

from lanewayd.errors import ErrorCode
from lanewayd.messages import RunError, Usage


def turn_cap_error(turns: int, max_turns: int) -> RunError | None:
    """The error that ends a run which made `turns` model calls and wants another; None while it may. 0 = no limit."""
    if max_turns == 0 or turns < max_turns:
        return None
    return RunError(
        ErrorCode.MAX_TURNS.value,
        f"the run made {turns} model calls, as many as max_turns allows, and needs another; "
        "raise max_turns or ask for less",
    )


def no_tools_error() -> RunError:
    """The error that ends a run whose allow list leaves it no tool."""
    return RunError(
        ErrorCode.TOOLS_EMPTY.value,
        "tools_allow and tools_deny leave no tool that exists; name existing tools, or leave tools_allow empty for all",
    )


@dataclass(frozen=True, slots=True)
class Allowance:
    """What may be used; 0 = no limit."""

    max_tokens: int = 0
    max_cost_usd: float = 0.0


UNLIMITED = Allowance()


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run and its session may use, and what the session's earlier runs have used."""

    run: Allowance = UNLIMITED
    session: Allowance = UNLIMITED
    session_before: Usage = field(default_factory=Usage)

    @property
    def has_cost_limit(self) -> bool:
        """Prices matter for it."""
        return bool(self.run.max_cost_usd or self.session.max_cost_usd)


def budget_error(budget: Budget, used: Usage) -> RunError | None:
    """The error that ends a run which has `used` so much and wants another model call; None while it may.

    A call is made while the limit is not reached, so its own use may go beyond. What is not known counts nothing.
    """
    return _over("limits", budget.run, used, who="the run", way_out="raise the setting or ask for less") or _over(
        "limits.session",
        budget.session,
        budget.session_before + used,
        who="the session",
        way_out="raise the setting or go on in another session",
    )


def _over(section: str, allowed: Allowance, used: Usage, *, who: str, way_out: str) -> RunError | None:
    if allowed.max_tokens and used.total_tokens >= allowed.max_tokens:
        what = f"{who} has used {used.total_tokens:,} tokens, and {section}.max_tokens is {allowed.max_tokens:,}"
    elif allowed.max_cost_usd and (used.cost_usd or 0.0) >= allowed.max_cost_usd:
        what = f"{who} has cost ${used.cost_usd:.6g}, and {section}.max_cost_usd is ${allowed.max_cost_usd:g}"
    else:
        return None
    return RunError(ErrorCode.BUDGET_EXCEEDED.value, f"{what}: no further model call is made; {way_out}")


NO_BUDGET = Budget()


def remaining_budget_s(timeout_s: float, used_s: float) -> float | None:
    """Seconds a run may still be RUNNING; None = no deadline. Never negative."""
    return None if timeout_s == 0 else max(0.0, timeout_s - used_s)
