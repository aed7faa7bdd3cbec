"""How a command ends: exit codes, and errors that say what happened and what to do."""

from enum import IntEnum

import grpc

from laneway.errors import LanewayError
from laneway.v1 import run_pb2

_ADVICE = {
    "RUN_NOT_FOUND": "run ids are printed by `laneway agent`; ended runs are removed after a while (30 days)",
    "SESSION_NOT_FOUND": "a session exists after its first message",
    "SESSION_ACTIVE": "--force aborts what runs or waits; `laneway subscribe --session KEY` shows what it does",
    "SESSION_ARCHIVED": "`laneway sessions set KEY --no-archive` takes it back into use",
    "SESSION_BUSY": "another process writes to the session; try again in a moment",
    "TENANT_LIMIT": "try again later",
    "CURSOR_AHEAD": "the place is of another store, or of one that was put back in time: begin without it",
    "AGENT_NOT_FOUND": "agents are sections [agents.list.<id>] of the settings file; without any there is `main`",
    "IDEMPOTENCY_KEY_REUSED": "the key belongs to another message; take a new one",
    "QUEUE_FULL": "too many runs wait; try again later or raise `limits.max_queued_runs`",
    "DRAINING": "the server is leaving; try again when it is back",
    "STORE_UNAVAILABLE": "the server cannot write its store, is its disk full? Try again with the same idempotency key",
    "CURSOR_PRUNED": "these events were removed by retention; `laneway wait RUN_ID` shows the result",
}


class ExitCode(IntEnum):
    """What a command tells its caller."""

    OK = 0
    RUN_FAILED = 1
    USAGE = 2
    NOT_FINISHED = 3
    """Deadline or cancelled."""
    NO_SERVER = 4


class CliError(Exception):
    """Ends the command with a text on stderr and an exit code."""

    def __init__(self, message: str, exit_code: ExitCode) -> None:
        super().__init__(message)
        self.exit_code = exit_code


_EXIT_CODES = {
    grpc.StatusCode.UNAVAILABLE: ExitCode.NO_SERVER,
    grpc.StatusCode.DEADLINE_EXCEEDED: ExitCode.NOT_FINISHED,
    grpc.StatusCode.CANCELLED: ExitCode.NOT_FINISHED,
    grpc.StatusCode.INTERNAL: ExitCode.RUN_FAILED,
    grpc.StatusCode.UNKNOWN: ExitCode.RUN_FAILED,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ExitCode.RUN_FAILED,
    grpc.StatusCode.OUT_OF_RANGE: ExitCode.RUN_FAILED,
}

_STATE_EXIT_CODES = {
    run_pb2.RUN_STATE_SUCCEEDED: ExitCode.OK,
    run_pb2.RUN_STATE_FAILED: ExitCode.RUN_FAILED,
}


def exit_code_of(state: run_pb2.RunState) -> ExitCode:
    """The exit code of a command that followed a run to `state`."""
    return _STATE_EXIT_CODES.get(state, ExitCode.NOT_FINISHED)


def call_failed(error: LanewayError) -> CliError:
    """A failed call as an error for people: reason, the server's text, what to do."""
    exit_code = _EXIT_CODES.get(error.status, ExitCode.USAGE)
    if not error.reason:
        text = f"the call failed: {error.message or 'no details'} ({error.status.name})"
        if error.status is grpc.StatusCode.UNIMPLEMENTED:
            text += "; the server is older than this command or no Laneway server"
        return CliError(text, exit_code)
    advice = _ADVICE.get(error.reason)
    text = f"{error.message} ({error.reason})"
    return CliError(f"{text}\n  {advice}" if advice else text, exit_code)
