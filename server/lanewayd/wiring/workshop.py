"""Tools and the places where they work: implements runs.collaborators.Workshop over the built-in tools."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lanewayd.clock import Clock
from lanewayd.records import Run
from lanewayd.runs.admin import ToolListing
from lanewayd.settings.schema import Settings
from lanewayd.tools.children import ChildProcesses
from lanewayd.tools.file_access import FileAccess
from lanewayd.tools.files import EditTool, ReadTool, WriteTool
from lanewayd.tools.interface import Tool, ToolContext, Toolset
from lanewayd.tools.leftovers import Owner
from lanewayd.tools.shell import ExecTool
from lanewayd.tools.toolset import ToolShelf, normalised_name


@dataclass(frozen=True, slots=True)
class RunWorkplace:
    """Implements loop.interface.Workplace: the workspace folder of a run's agent."""

    run: Run
    folder: Path

    async def prepare(self) -> None:
        """Make the folder (R-4.82). Raises OSError."""
        if not self.folder.is_dir():  # one look costs less than a thread's turn, and nearly every run finds it
            await asyncio.to_thread(self.folder.mkdir, parents=True, exist_ok=True)

    def context(self, call_id: str, report: Callable[[str], None]) -> ToolContext:
        """What a call may know."""
        run = self.run
        return ToolContext(
            run_id=run.run_id,
            call_id=call_id,
            agent_id=run.request.agent_id,
            session_key=run.session_key,
            workspace=self.folder.resolve(),
            report=report,
        )


class BuiltInWorkshop:
    """The built-in tools. Owns their threads; `close` when no call is left."""

    def __init__(
        self,
        settings: Settings,
        *,
        environ: Mapping[str, str],
        owner: Owner,
        clock: Clock,
        address: Callable[[], str],
        more_tools: tuple[Tool, ...] = (),
    ) -> None:
        """`address`: where this server listens, for children. `more_tools`: of tests, beside the built-in ones."""
        self._settings = settings
        self._children = ChildProcesses(owner=owner, clock=clock)
        self._files = FileAccess(
            home=Path(environ["HOME"]) if environ.get("HOME") else None, is_confined=settings.tools.files.confined
        )
        tools: list[Tool] = [ReadTool(self._files), WriteTool(self._files), EditTool(self._files), *more_tools]
        if settings.tools.exec.enabled:
            tools.append(
                ExecTool(
                    children=self._children,
                    clock=clock,
                    environment=environ,
                    passed_on=settings.tools.exec.env,
                    address=address,
                    default_timeout_s=settings.tools.exec.timeout_seconds,
                )
            )
        self._tools = tools
        self._shelf = ToolShelf(tools)

    def toolset(self, run: Run) -> Toolset:
        """The tools of a run, after its policy."""
        return self._shelf.select(run.request.tools_allow, run.request.tools_deny)

    def workplace(self, run: Run) -> RunWorkplace:
        """Where they work."""
        return RunWorkplace(run, self._settings.workspace_of(run.request.agent_id))

    def workspace(self, agent_id: str) -> str:
        """The folder of an agent, as the model is told of it."""
        return str(self._settings.workspace_of(agent_id))

    def listings(self) -> list[ToolListing]:
        """The tools for ListTools."""
        return [
            ToolListing(tool.spec.name, tool.spec.description, tool.spec.schema, "built-in") for tool in self._tools
        ]

    def tool_of(self, name: str) -> str:
        """The tool that a model means by a name; "" for one that there is not."""
        normalised = normalised_name(name)
        return next((tool.spec.name for tool in self._tools if normalised_name(tool.spec.name) == normalised), "")

    def close(self) -> None:
        """End the threads of the tools."""
        self._children.close()
        self._files.close()
