"""What a model call cost. Pure. Source: spec 08, section 8; prices are those of the catalogue and the settings."""

from dataclasses import replace

from lanewayd.messages import Prices, Usage

_TOKENS_PER_PRICE = 1_000_000


def cost_usd(usage: Usage, prices: Prices) -> float | None:
    """USD for the tokens of `usage`; None when a kind of token was used whose price is not known, or none was used.

    Reasoning tokens are part of the output and cost what that costs.
    """
    used = [
        (usage.input_tokens, prices.input),
        (usage.output_tokens, prices.output),
        (usage.cache_read_tokens, prices.cache_read),
        (usage.cache_write_tokens, prices.cache_write),
    ]
    costs = [price if price is None else tokens * price for tokens, price in used if tokens > 0]
    known = [cost for cost in costs if cost is not None]
    if not costs or len(known) < len(costs):
        return None
    return sum(known) / _TOKENS_PER_PRICE


def priced(usage: Usage, prices: Prices) -> Usage:
    """`usage` of one call with what it cost."""
    return replace(usage, cost_usd=cost_usd(usage, prices))
