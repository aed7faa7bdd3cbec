"""What a model call cost. Pure. Source: spec 08, section 8; prices are those of the catalogue and the settings."""

from dataclasses import replace

from lanewayd.messages import Prices, Usage

_TOKENS_PER_PRICE = 1_000_000


def cost_usd(usage: Usage, prices: Prices) -> float | None:
    """USD for the tokens of `usage`; None when a kind of token was used whose price is not known, or none was used.

    Reasoning tokens are part of the output and cost what that costs.
    """
    reads, writes = _factors(usage, prices)
    used = [
        (usage.input_tokens * reads, prices.input),
        (usage.output_tokens * writes, prices.output),
        (usage.cache_read_tokens * reads, prices.cache_read),
        (usage.cache_write_tokens * reads, prices.cache_write),
    ]
    costs = [price if price is None else tokens * price for tokens, price in used if tokens > 0]
    known = [cost for cost in costs if cost is not None]
    if not costs or len(known) < len(costs):
        return None
    return sum(known) / _TOKENS_PER_PRICE


def _factors(usage: Usage, prices: Prices) -> tuple[float, float]:
    """By how much what is read, and what is written, costs more than the prices say."""
    long = prices.long_prompts
    prompt_tokens = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    if long is None or prompt_tokens <= long.above_tokens:
        return 1.0, 1.0
    return long.input_factor, long.output_factor


def priced(usage: Usage, prices: Prices) -> Usage:
    """`usage` of one call with what it cost."""
    return replace(usage, cost_usd=cost_usd(usage, prices))
