"""The child process: one model behind an OpenAI-compatible HTTP server on a loopback port (`python -m` runs it).

It reads one line of JSON from stdin (`EngineSpec`), writes one to stdout, `{"port": N}` or `{"error": "..."}`, and
serves until stdin ends: however its parent dies, it dies too. It says nothing else, so that no prompt gets into a log.
"""

import json
import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

_NICENESS = 10
_HTTP_THREADS = 32
"""A waiting request holds one; they cost nothing while they wait."""
_ERRORS_ONLY = 1
_MOST_REASON_BYTES = 600


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """What to serve. `api_key` keeps other users of the machine out; the port is open to all of them."""

    gguf: str
    model: str
    api_key: str
    context_tokens: int
    max_answer_tokens: int

    def to_line(self) -> bytes:
        """For stdin."""
        return json.dumps(asdict(self)).encode() + b"\n"


def main() -> None:
    """Serve until stdin ends."""
    report_fd = os.dup(1)
    with tempfile.TemporaryFile() as said:
        # The engine is C++ and writes where it likes; what it said is shown only if it cannot start.
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        try:
            spec = EngineSpec(**json.loads(sys.stdin.buffer.readline()))
            os.nice(_NICENESS)
            server = _serve(spec)
        except Exception as error:  # noqa: BLE001 - the edge of the process: its parent is told
            said.seek(max(0, said.seek(0, os.SEEK_END) - _MOST_REASON_BYTES))
            reason = said.read().decode("utf-8", "replace").strip()
            os.write(report_fd, json.dumps({"error": f"{error} {reason}".strip()}).encode() + b"\n")
            os._exit(1)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    os.write(report_fd, json.dumps({"port": urlsplit(server.listening_address).port}).encode() + b"\n")
    os.close(report_fd)
    while os.read(0, 1024):
        pass
    os._exit(0)  # not through destructors: an answer may be under way


def _serve(spec: EngineSpec) -> Any:
    """The engine's server, listening. Raises RuntimeError."""
    import xllamacpp  # type: ignore[import-untyped]  # noqa: PLC0415 - where it is not installed, this module still is

    params = xllamacpp.CommonParams()
    params.model.path = spec.gguf
    params.model_alias = {spec.model}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [spec.api_key]
    params.n_ctx = spec.context_tokens
    params.n_predict = spec.max_answer_tokens
    params.n_parallel = 1  # one thread: two answers at once would each come at half the speed
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_threads_http = _HTTP_THREADS
    params.cache_ram_mib = 0  # the engine's default keeps up to 8 GiB of prompts
    params.warmup = False
    params.use_jinja = True
    params.offline = True
    params.ui = False
    params.endpoint_slots = False  # they show prompts
    params.verbosity = _ERRORS_ONLY
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
