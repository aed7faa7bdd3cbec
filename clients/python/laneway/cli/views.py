"""Where the events of runs go: to a person, or to a program."""

import sys
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console

from laneway.cli.render import RunView
from laneway.cli.text import json_line
from laneway.v1 import event_pb2, run_pb2


class EventView(Protocol):
    """Takes events in the order of the log."""

    def show(self, event: event_pb2.Event) -> None:
        """The next event."""

    def notice(self, text: str) -> None:
        """Something a person wants to know."""


class View(EventView, Protocol):
    """Takes a run from its acceptance on."""

    def accepted(self, response: run_pb2.AgentResponse) -> None:
        """The message is durable."""


class JsonView:
    """One event per line on stdout, as the server sent it; `accepted` comes first as RunAgent would send it."""

    def accepted(self, response: run_pb2.AgentResponse) -> None:
        self.show(event_pb2.Event(run_id=response.run_id, session_key=response.session_key, accepted=response))

    def show(self, event: event_pb2.Event) -> None:
        print(json_line(event), flush=True)

    def notice(self, text: str) -> None:
        print(f"laneway: {text}", file=sys.stderr)


@dataclass(slots=True)
class ManyRunsView:
    """Events of several runs, whatever their order: whenever another run goes on, a line says which one."""

    console: Console
    _views: dict[str, RunView] = field(default_factory=dict)
    _shown_run_id: str = ""

    def show(self, event: event_pb2.Event) -> None:
        view = self._views.get(event.run_id) or self._views.setdefault(event.run_id, RunView(self.console, heads=True))
        if event.run_id != self._shown_run_id:
            if self._shown_run_id:
                self._views[self._shown_run_id].leave()
            view.head(event.run_id, event.session_key)
            self._shown_run_id = event.run_id
        view.show(event)
        if view.has_ended:
            # Forgotten, so that a subscription without end does not grow.
            del self._views[event.run_id]
            self._shown_run_id = ""

    def notice(self, text: str) -> None:
        view = self._views.get(self._shown_run_id) or RunView(self.console)
        view.notice(text)
