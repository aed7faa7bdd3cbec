"""The soak `events`: millions of events delivered to subscribers that come and go; see `wave`."""

import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.soak.events.wave import SCRIPTS, Wave, WaveSettings
from tests.soak.flatness import growth
from tests.soak.inspected_server import inspected_server, rss_bytes
from tests.soak.playing import Place, PlayUnit, Unit
from tests.soak.progress import Progress, UnitResult
from tests.soak.report import Figure

TOML = "[events]\ndelta_interval_ms = 0\n[drain]\ntimeout_s = 2\npark_s = 1\n"
DRIVER_LIMIT_BYTES = 2.0
"""What the driver may grow by per delivery: 20 MB over the ten millions."""


class Events:
    """Implements Soak. A round is one event delivered to one subscriber."""

    name = "events"
    rounds_are = "events delivered"
    default_rounds = 10_000_000

    def __init__(self, *, unit_rounds: int = 100_000, settings: WaveSettings | None = None) -> None:
        self.unit_rounds = unit_rounds
        self._settings = settings or WaveSettings()

    @asynccontextmanager
    async def opened(self, place: Place) -> AsyncGenerator[PlayUnit, None]:
        async with inspected_server(place.folder / "server", toml=TOML, scripts=SCRIPTS) as server:

            async def play_unit(unit: Unit) -> UnitResult:
                wave = Wave(server, self._settings, name=f"u{unit.number}", seed=unit.seed)
                await wave.play(unit.rounds)
                await server.idle()
                record = wave.record
                gc.collect()
                return UnitResult(
                    rounds=record.deliveries,
                    counts={"events stored": record.stored, **dict(sorted(wave.counts.items()))},
                    samples=[{"at": unit.rounds_before, "driver_rss_bytes": rss_bytes("self")}],
                    violations=record.violations,
                )

            yield play_unit

    def figures(self, progress: Progress) -> list[Figure]:
        samples = progress.longest_segment()
        return growth(samples, "driver_rss_bytes", "driver RSS", unit="B/event", limit=DRIVER_LIMIT_BYTES)
