from collections.abc import Callable
from pathlib import Path

import pytest

from lanewayd.tools.interface import ToolContext

MakeContext = Callable[..., ToolContext]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    path.mkdir()
    return path.resolve()


@pytest.fixture
def context(workspace: Path) -> ToolContext:
    return context_in(workspace)


def context_in(workspace: Path, call_id: str = "call_1", window: int = 0) -> ToolContext:
    return ToolContext(
        run_id="run_1",
        call_id=call_id,
        agent_id="main",
        session_key="agent:main:main",
        workspace=workspace,
        report=lambda _text: None,
        context_window_tokens=window,
    )
