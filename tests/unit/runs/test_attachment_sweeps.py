"""Files of attachments against sweeps: what a message names or is about to name stays, what nobody names goes."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.commit_gates import FailingGate, HoldingGate
from tests.unit.runs.bench import TENANT, Bench, running_bench, soon
from tests.unit.runs.staged_model import answer

from lanewayd.errors import LanewayError, StoreUnavailable
from lanewayd.runs.interface import NewAttachment
from lanewayd.runs.retention import Retention, RetentionSettings
from lanewayd.store.interface import AcceptRun, RunFilter

HASH = "a" * 64
NOTE = NewAttachment("note.txt", "text/plain", b"milk", HASH)


def files_of(bench: Bench) -> dict[str, bytes]:
    folder = bench.home / "blobs"
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


async def sweep(bench: Bench) -> int:
    return await bench.parts.blobs.sweep(bench.store.unnamed_blobs)


def retention_of(bench: Bench, **ages: timedelta) -> Retention:
    kept: dict[str, Any] = {"events_max_age": timedelta(days=7), "runs_max_age": timedelta(days=30), **ages}
    settings = RetentionSettings(max_events_per_run=1000, events_max_bytes=2**31, **kept)
    return Retention(settings, store=bench.store, blobs=bench.parts.blobs, clock=bench.clock)


async def test_the_file_of_a_message_whose_caller_hangs_up_before_the_commit_stays(tmp_path: Path) -> None:
    """The message is accepted all the same (D-1): a sweep that comes before its commit leaves the file alone."""
    gate = HoldingGate(lambda command: isinstance(command, AcceptRun))
    async with running_bench(tmp_path, gate=gate) as bench:
        bench.provider.plan(answer())
        call = asyncio.ensure_future(bench.accept(attachments=(NOTE,), idempotency_key="k"))
        await soon(gate.reached())
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        sweeping = asyncio.ensure_future(sweep(bench))
        assert set(files_of(bench)) == {HASH}
        gate.release()
        assert await soon(sweeping) == 0
        assert files_of(bench) == {HASH: b"milk"}
        await bench.done(await bench.accept(attachments=(NOTE,), idempotency_key="k"))
        assert bench.provider.calls[0].request.contents == {HASH: b"milk"}


async def test_a_message_that_brings_a_file_while_it_is_swept_has_it(tmp_path: Path) -> None:
    """The sweep has asked for the rows already when the message comes that names the file."""
    async with running_bench(tmp_path) as bench:
        await bench.parts.blobs.put(HASH, b"milk")
        asked, may_answer = asyncio.Event(), asyncio.Event()

        async def unnamed(names: Any) -> Any:
            found = await bench.store.unnamed_blobs(names)
            asked.set()
            await may_answer.wait()
            return found

        sweeping = asyncio.ensure_future(bench.parts.blobs.sweep(unnamed))
        await soon(asked.wait())
        run_id = await bench.accept(attachments=(NOTE,))
        may_answer.set()
        assert await soon(sweeping) == 0
        assert files_of(bench) == {HASH: b"milk"}
        (await bench.model_call()).end(answer())
        await bench.done(run_id)


async def test_the_file_of_a_refused_message_goes_with_the_next_retention(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        assert await sweep(bench) == 0  # that of the start
        with pytest.raises(LanewayError):
            await bench.accept(attachments=(NOTE,), parent_run_id="run_nobody")
        assert set(files_of(bench)) == {HASH}
        await retention_of(bench).prune()
        assert files_of(bench) == {}


async def test_a_message_without_files_costs_no_statement_and_no_thread_for_them(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.parts.blobs.close()  # whatever needs its thread fails from now on
        said: list[str] = []
        connection = bench.store._writer._transaction._connection  # noqa: SLF001 - every statement of the writer
        connection.set_trace_callback(said.append)
        bench.provider.plan(answer())
        await bench.done(await bench.accept())
        connection.set_trace_callback(None)
        assert any("INSERT INTO runs" in statement for statement in said)
        assert not [statement for statement in said if "blobs" in statement or "INTO attachments" in statement]


async def test_a_message_that_finds_the_queue_full_writes_no_file(tmp_path: Path) -> None:
    async with running_bench(tmp_path, max_queued_runs=0) as bench:
        with pytest.raises(LanewayError, match="full"):
            await bench.accept(attachments=(NOTE,))
        assert files_of(bench) == {}


async def test_a_file_goes_with_the_last_run_that_retention_removes(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(answer(), answer())
        await bench.done(await bench.accept("one", attachments=(NOTE,)))
        await bench.clock.advance(40 * 24 * 3600.0)
        await bench.done(await bench.accept("two", attachments=(NOTE,)))
        await retention_of(bench).prune()
        assert files_of(bench) == {HASH: b"milk"}
        await bench.clock.advance(40 * 24 * 3600.0)
        await retention_of(bench).prune()
        assert files_of(bench) == {}


async def test_a_sweep_that_the_store_does_not_answer_is_made_up_for(tmp_path: Path) -> None:
    gate = FailingGate()
    async with running_bench(tmp_path, gate=gate) as bench:
        await sweep(bench)
        gate.is_failing = True
        with pytest.raises(StoreUnavailable):
            await bench.accept(attachments=(NOTE,))
        with pytest.raises(StoreUnavailable):
            await sweep(bench)
        assert set(files_of(bench)) == {HASH}
        gate.is_failing = False
        assert await sweep(bench) == 1
        assert files_of(bench) == {}
        assert await bench.store.runs(TENANT, RunFilter(), before_no=None, limit=10) == []
