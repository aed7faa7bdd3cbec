"""What there is to say about a running server, from what it says of itself. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from lanewayd.doctor.findings import Finding, Level
from lanewayd.records import MAIN_LANE


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane of the server."""

    name: str
    width: int
    active: int
    queued: int


@dataclass(frozen=True, slots=True)
class ServerReport:
    """What asking a server gave. `problem` says why it did not answer; then the rest is empty."""

    address: str
    problem: str = ""
    version: str = ""
    is_draining: bool = False
    is_ready: bool = True
    """Health says SERVING."""
    store_path: str = ""
    commit_ms: float = 0.0
    lanes: Sequence[Lane] = ()


_SLOW_COMMIT_MS = 250.0


def judge_server(report: ServerReport, *, own_version: str) -> list[Finding]:
    """How the server is."""

    def finding(level: Level, text: str, advice: str) -> Finding:
        return Finding("server", level, text, advice)

    if report.problem:
        text = f"no server answers on {report.address}: {report.problem}"
        advice = (
            "Is it running, and is the address right (--address, LANEWAY_ADDRESS)? Start one with `laneway serve`. One "
            "that has stopped answering: look at its log, then kill it; its runs go on when it is started again."
        )
        return [finding(Level.FAIL, text, advice)]
    findings = []
    if report.is_draining:
        text = f"the server on {report.address} is leaving and takes no new runs"
        findings.append(finding(Level.WARN, text, "Wait for its end (drain.timeout_s at most), then start it again."))
    elif not report.is_ready:
        text = f"the server on {report.address} is not ready: it cannot write its store {report.store_path}"
        findings.append(finding(Level.FAIL, text, "Is the disk full or gone? Its log says what the disk answered."))
    for lane in report.lanes:
        if lane.queued and lane.width == 0:
            text = f"{lane.queued} runs wait in the lane {lane.name}, which is suspended"
            findings.append(finding(Level.WARN, text, f"Set `lanes.{lane.name}.max_concurrent` above 0 and restart."))
        elif lane.queued and lane.active >= lane.width:
            name = "agents.defaults.max_concurrent" if lane.name == MAIN_LANE else f"lanes.{lane.name}.max_concurrent"
            text = f"the lane {lane.name} is full: {lane.active} runs go on, {lane.queued} wait"
            findings.append(finding(Level.WARN, text, f"They start in turn; `{name}` widens the lane."))
    if report.commit_ms > _SLOW_COMMIT_MS:
        text = f"commits take {report.commit_ms:.0f} ms"
        findings.append(finding(Level.WARN, text, "The disk is slow: put the home on a local one."))
    if report.version != own_version:
        text = f"the server on {report.address} is version {report.version}, this command is {own_version}"
        findings.append(finding(Level.WARN, text, "Restart the server to use what is installed."))
    serving = f"version {report.version} serves on {report.address}, store {report.store_path}"
    return findings or [Finding("server", Level.OK, serving)]
