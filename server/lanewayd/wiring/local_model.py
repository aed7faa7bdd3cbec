"""The embedded model as the settings have it: what is there, how its process starts, the provider that drives it."""

import importlib
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from lanewayd.clock import Clock
from lanewayd.models.resolve import EmbeddedModel
from lanewayd.providers.call_ids import random_call_id
from lanewayd.providers.local.dialect import EMBEDDED_MANNERS, OTHER_MANNERS, LocalChat
from lanewayd.providers.local.engine import EngineSpec
from lanewayd.providers.local.process import ModelCommand, StartFailed
from lanewayd.providers.local.provider import LocalProvider, LocalService
from lanewayd.providers.local.supervisor import ModelSupervisor
from lanewayd.providers.local.weights import find_weights, verify
from lanewayd.settings.models import ModelsSettings
from lanewayd.tools.environment import inherited_environment
from lanewayd.tools.leftovers import OWNER_VARIABLE

_ENGINE_MODULE = "lanewayd.providers.local.engine"
_EMBEDDED_CONTEXT_TOKENS = 4_096
"""Half of what it was trained for: memory, and what reading it again takes on one thread."""
_EMBEDDED_ANSWER_TOKENS = 256
_OTHER_CONTEXT_TOKENS = 8_192
_OTHER_ANSWER_TOKENS = 4_096


class LocalModel:
    """What a start of the service knows of the embedded model. The weights are read and checked once, at first use."""

    def __init__(self, models: ModelsSettings, *, environ: Mapping[str, str], clock: Clock) -> None:
        self._models = models
        self._environ = environ
        self._clock = clock
        self._weights = find_weights(models.local.gguf)
        self._is_verified = False
        self._api_key = secrets.token_hex(24)

    @property
    def facts(self) -> EmbeddedModel:
        """For resolving; `problem` is the advice when it cannot be used."""
        if not self._models.local.enabled:
            return EmbeddedModel(self._weights.model, "the embedded model is switched off (`models.local.enabled`)")
        if self._weights.fault is not None:
            # Somebody who was told what to install tries again, and meets the server that told it.
            importlib.invalidate_caches()
            self._weights = find_weights(self._models.local.gguf)
        return EmbeddedModel(self._weights.model, self._weights.advice)

    @property
    def context_tokens(self) -> int:
        """How long a conversation may be."""
        return _OTHER_CONTEXT_TOKENS if self._models.local.gguf is not None else _EMBEDDED_CONTEXT_TOKENS

    @property
    def api_key(self) -> str:
        """Of its endpoint, to be shown nowhere."""
        return self._api_key

    def provider(self, owner: Callable[[], str]) -> LocalProvider:
        """`owner`: the mark of this start, by which its processes are found when they are left over (D-2)."""
        models, weights = self._models, self._weights
        return LocalProvider(
            LocalService(
                weights.model,
                self._api_key,
                timeout_s=models.idle_timeout_seconds,
                transport="httpx" if models.transport == "httpx" else "aiohttp",
            ),
            supervisor=ModelSupervisor(lambda: self._command(owner()), clock=self._clock),
            dialect=LocalChat(EMBEDDED_MANNERS if weights.is_embedded else OTHER_MANNERS, new_call_id=random_call_id),
            clock=self._clock,
            new_call_id=random_call_id,
        )

    def _command(self, owner: str) -> ModelCommand:
        """Runs in a thread. Raises StartFailed for weights that are not what they should be."""
        weights = self._weights if self._is_verified else verify(self._weights)
        if weights.path is None:
            raise StartFailed(weights.advice)
        self._is_verified = True
        spec = EngineSpec(
            gguf=str(weights.path),
            model=weights.model,
            api_key=self._api_key,
            context_tokens=self.context_tokens,
            max_answer_tokens=_EMBEDDED_ANSWER_TOKENS if weights.is_embedded else _OTHER_ANSWER_TOKENS,
        )
        environment = inherited_environment(self._environ)
        # It finds the modules that this process finds, and no others: -P keeps its working folder out.
        environment |= {OWNER_VARIABLE: owner, "PYTHONPATH": os.pathsep.join(_module_folders())}
        return ModelCommand((sys.executable, "-P", "-m", _ENGINE_MODULE), environment, spec.to_line())


def _module_folders() -> list[str]:
    return [str(Path(folder).resolve()) for folder in sys.path if folder and Path(folder).is_dir()]
