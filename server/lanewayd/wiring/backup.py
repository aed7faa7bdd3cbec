"""The backup of the store that the settings name; for the command line."""

from collections.abc import Mapping
from pathlib import Path

from lanewayd.config import Flags, load_settings
from lanewayd.errors import StartupError
from lanewayd.store.backup import Backup, BackupFailed, OnProgress, back_up

__all__ = ["Backup", "BackupFailed", "OnProgress", "StartupError", "back_up_store"]


def back_up_store(
    target: Path,
    *,
    environ: Mapping[str, str],
    config_path: Path | None,
    replaces: bool,
    on_progress: OnProgress,
) -> Backup:
    """Copy the store to `target`, while a server uses it or not.

    Raises StartupError for wrong settings, FileExistsError unless `replaces`, else BackupFailed.
    """
    # Where a server listens does not matter here.
    settings = load_settings(environ, Flags(is_insecure=True), config_path)
    return back_up(
        settings.store_path,
        Path.cwd() / target,
        blobs=settings.home / "blobs",
        replaces=replaces,
        on_progress=on_progress,
    )
