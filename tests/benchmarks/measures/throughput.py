"""P5, P6: runs per second of a saturated server, and the delivery of paced answers."""

from tests.benchmarks.bench import ANSWER, PACED_ANSWER, Bench, Loaded
from tests.benchmarks.figures import Row, bounded, compared, percentile, shown
from tests.benchmarks.mock_model import text_of, tokens_in

WIDTHS = (16, 64, 256)


async def saturated(bench: Bench) -> list[Row]:
    """P5: runs/s at 16, 64 and 256 sessions; the answers come in bursts."""
    widths = WIDTHS if not bench.options.is_quick else (2, 4)
    rows: list[Row] = []
    rates: dict[int, list[float]] = {}
    failed = 0
    for width in widths:
        mine: list[float] = []
        aio: list[float] = []
        async with bench.server(bench.f_aio()) as f_aio, bench.server(bench.product(width=width)) as product:
            await bench.warm_up(f_aio, product, sessions=width)
            for _ in bench.repeat():
                for server, values in ((f_aio, aio), (product, mine)):
                    count = bench.size(max(400, 4 * width), 2 * width)
                    loaded = await bench.runs(server, sessions=width, model=ANSWER, count=count)
                    values.append(loaded.runs_per_s)
                    failed += loaded.failed
        rates[width] = mine
        what = f"runs/s at {width} sessions"
        rows.append(compared("P5", what, "1/s", mine, aio, floor_name="F-aio", target=0.6, is_at_least=True))
    few, many = widths[-2:]
    what = f"runs/s at {many} over {few}"
    more = compared("P5", what, "1/s", rates[many], rates[few], floor_name=str(few), target=0.9, is_at_least=True)
    return [*rows, more, bounded("P5", "runs that failed", "", [failed], at_most=0)]


async def paced(bench: Bench) -> list[Row]:
    """P6: 64 sessions, 5 ms a token."""
    sessions = bench.size(64, 4)
    count_tokens, delay_s, _ = tokens_in(PACED_ANSWER)
    ideal_ms = count_tokens * delay_s * 1000
    mine: list[Loaded] = []
    aio: list[Loaded] = []
    async with bench.server(bench.f_aio()) as f_aio, bench.server(bench.product(width=sessions)) as product:
        await bench.warm_up(f_aio, product, sessions=sessions)
        for _ in bench.repeat():
            for server, values in ((f_aio, aio), (product, mine)):
                count = sessions * bench.size(6, 2)
                values.append(
                    await bench.runs(server, sessions=sessions, model=PACED_ANSWER, count=count, stagger_s=1.0)
                )
    characters = len(text_of(count_tokens))
    return [
        compared(
            "P6",
            "characters/s delivered",
            "1/s",
            [load.runs_per_s * characters for load in mine],
            [load.runs_per_s * characters for load in aio],
            floor_name="F-aio",
            target=0.8,
            is_at_least=True,
        ),
        bounded("P6", "run p50", "ms", [percentile(load.run_ms, 0.5) for load in mine], at_most=2 * ideal_ms),
        compared(
            "P6",
            "server CPU per token",
            "us",
            [load.cpu_ms_per_run * 1000 / count_tokens for load in mine],
            [load.cpu_ms_per_run * 1000 / count_tokens for load in aio],
            floor_name="F-aio",
            target=1.4,
        ),
        shown("P6", "messages per run", "", [load.messages_per_run for load in mine]),
        shown("P6", "load of the driver", "", [load.driver_load for load in (*mine, *aio)]),
        shown("P6", "load of the mock model", "", [load.model_load for load in (*mine, *aio)]),
    ]
