"""The soaks by name, in the order in which all of them run."""

from collections.abc import Callable

from tests.soak.cancelled_calls import CancelledCalls
from tests.soak.client_faults import ClientFaults
from tests.soak.events.soak import Events
from tests.soak.exec_aborts import ExecAborts
from tests.soak.histories import Histories
from tests.soak.kills.soak import Kills
from tests.soak.one_off_sessions import OneOffSessions
from tests.soak.playing import Soak

SOAKS: dict[str, Callable[[], Soak]] = {
    "histories": Histories,
    "kills": Kills,
    "events": Events,
    "sessions": OneOffSessions,
    "exec": ExecAborts,
    "subscribers": CancelledCalls,
    "client": ClientFaults,
}
