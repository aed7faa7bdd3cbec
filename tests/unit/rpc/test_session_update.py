"""What an update of a session may say, and how each part is read."""

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from laneway.v1 import agent_pb2, session_pb2
from lanewayd.errors import ErrorCode, FieldError
from lanewayd.records import SessionPatch, SessionSettings
from lanewayd.rpc.limits import Limits
from lanewayd.rpc.session_update import SETTABLE, session_patch


def update(*paths: str, **fields: Any) -> session_pb2.UpdateSessionRequest:
    request = session_pb2.UpdateSessionRequest(session=session_pb2.Session(session_key="s", **fields))
    request.update_mask.paths.extend(paths)
    return request


SET = [
    ("model", {"model": "acme/m"}, SessionSettings(model="acme/m")),
    *(
        ("thinking", {"thinking": f"THINKING_LEVEL_{level.upper()}"}, SessionSettings(thinking=level))
        for level in ("off", "minimal", "low", "medium", "high", "xhigh", "max", "adaptive", "ultra")
    ),
    *(
        ("verbose", {"verbose": f"VERBOSITY_{word.upper()}"}, SessionSettings(verbose=word))
        for word in ("off", "on", "full")
    ),
    *(
        ("reasoning", {"reasoning": f"REASONING_VISIBILITY_{word.upper()}"}, SessionSettings(reasoning=word))
        for word in ("off", "on", "stream")
    ),
    *(
        ("queue_mode", {"queue_mode": f"QUEUE_MODE_{word.upper()}"}, SessionSettings(queue_mode=word))
        for word in ("followup", "collect", "interrupt")
    ),
    *(
        ("queue_drop", {"queue_drop": f"QUEUE_DROP_{word.upper()}"}, SessionSettings(queue_drop=word))
        for word in ("old", "new", "summarize")
    ),
    ("queue_cap", {"queue_cap": 1000}, SessionSettings(queue_cap=1000)),
    ("trace", {"trace": True}, SessionSettings(trace=True)),
    ("trace", {"trace": False}, SessionSettings(trace=False)),
]


@pytest.mark.parametrize(("path", "fields", "expected"), SET, ids=str)
def test_a_setting_is_read_as_the_service_knows_it(
    path: str, fields: dict[str, Any], expected: SessionSettings
) -> None:
    assert session_patch(update(path, **fields), Limits()) == SessionPatch(frozenset({path}), expected)


@pytest.mark.parametrize(("milliseconds", "expected"), [(0, 0), (1500, 1500), (3_600_000, 3_600_000)])
def test_a_debounce_is_read_in_milliseconds(milliseconds: int, expected: int) -> None:
    debounce = Duration(seconds=milliseconds // 1000, nanos=milliseconds % 1000 * 1_000_000)
    patch = session_patch(update("queue_debounce", queue_debounce=debounce), Limits())
    assert patch == SessionPatch(frozenset({"queue_debounce_ms"}), SessionSettings(queue_debounce_ms=expected))


@pytest.mark.parametrize(
    ("path", "fields", "code"),
    [
        ("queue_debounce", {"queue_debounce": Duration(seconds=-1)}, ErrorCode.TIMEOUT_INVALID),
        ("queue_debounce", {"queue_debounce": Duration(seconds=3601)}, ErrorCode.FIELD_INVALID),
        ("queue_cap", {"queue_cap": -1}, ErrorCode.FIELD_INVALID),
        ("queue_cap", {"queue_cap": 1001}, ErrorCode.FIELD_INVALID),
        ("queue_drop", {"queue_drop": 9}, ErrorCode.ENUM_UNKNOWN),
    ],
)
def test_a_queue_setting_out_of_its_range_is_refused(path: str, fields: dict[str, Any], code: ErrorCode) -> None:
    with pytest.raises(FieldError) as refused:
        session_patch(update(path, **fields), Limits())
    assert (refused.value.code, refused.value.field) == (code, path)


def test_label_and_marks_are_read() -> None:
    patch = session_patch(update("label", "pinned", "archived", label="x", pinned=True, archived=True), Limits())
    assert patch == SessionPatch(frozenset({"label", "pinned", "archived"}), label="x", pinned=True, archived=True)


def test_what_the_mask_does_not_name_is_not_read() -> None:
    patch = session_patch(update("pinned", model="x" * 1000, thinking=99, queue_mode=1, label="y"), Limits())
    assert patch == SessionPatch(frozenset({"pinned"}))


def test_named_fields_without_a_value_are_cleared() -> None:
    names = frozenset(SETTABLE) - {"queue_debounce"} | {"queue_debounce_ms"}
    assert session_patch(update(*SETTABLE), Limits()) == SessionPatch(names)


def test_a_path_that_is_named_twice_counts_once() -> None:
    assert session_patch(update("label", "label", label="x"), Limits()) == SessionPatch(frozenset({"label"}), label="x")


@pytest.mark.parametrize("level", agent_pb2.ThinkingLevel.keys())
def test_every_level_of_the_contract_is_known(level: str) -> None:
    word = session_patch(update("thinking", thinking=level), Limits()).settings.thinking
    assert word == ("" if level.endswith("UNSPECIFIED") else level.removeprefix("THINKING_LEVEL_").lower())


REFUSED = [
    ((), {"label": "x"}, "FIELD_INVALID", "update_mask", "empty"),
    (("",), {}, "FIELD_INVALID", "update_mask", "''"),
    (("*",), {}, "FIELD_INVALID", "update_mask", "'*'"),
    (("label", "no_such"), {}, "FIELD_INVALID", "update_mask", "'no_such'"),
    (("session_key",), {}, "FIELD_INVALID", "update_mask", "'session_key'"),
    (("usage.input_tokens",), {}, "FIELD_INVALID", "update_mask", "'usage.input_tokens'"),
    (("x" * 5000,), {}, "FIELD_INVALID", "update_mask", "'" + "x" * 64 + "'"),
    (("queue_mode",), {"queue_mode": 99}, "ENUM_UNKNOWN", "queue_mode", "99"),
    (("model",), {"model": "x" * 513}, "FIELD_INVALID", "model", "512"),
    (("label",), {"label": "ü" * 257}, "FIELD_INVALID", "label", "512"),
    (("thinking",), {"thinking": 99}, "ENUM_UNKNOWN", "thinking", "99"),
    (("verbose",), {"verbose": 99}, "ENUM_UNKNOWN", "verbose", "99"),
    (("reasoning",), {"reasoning": 99}, "ENUM_UNKNOWN", "reasoning", "99"),
]


@pytest.mark.parametrize(("paths", "fields", "reason", "field", "text"), REFUSED)
def test_what_cannot_be_set_is_refused_by_its_name(
    paths: tuple[str, ...], fields: dict[str, Any], reason: str, field: str, text: str
) -> None:
    with pytest.raises(FieldError) as raised:
        session_patch(update(*paths, **fields), Limits())
    assert (raised.value.code, raised.value.field) == (reason, field)
    assert text in raised.value.message
    assert len(raised.value.message) < 300
