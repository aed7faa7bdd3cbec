"""rpc/agent_request.py: every check of the request, and that nothing else can come out."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from laneway.v1 import agent_pb2
from lanewayd.errors import FieldError
from lanewayd.records import Priority
from lanewayd.rpc.agent_request import new_message, request_hash
from lanewayd.rpc.limits import Limits
from lanewayd.runs.interface import NewMessage

MAX_S = 315_576_000_000


def _checked(request: agent_pb2.AgentRequest, limits: Limits | None = None) -> NewMessage:
    return new_message(request, tenant="tenant-a", traceparent="tp", limits=limits or Limits())


def _request(**fields: Any) -> agent_pb2.AgentRequest:
    return agent_pb2.AgentRequest(**({"message": "Hello"} | fields))


def _refusal(request: agent_pb2.AgentRequest, limits: Limits | None = None) -> tuple[str, str]:
    with pytest.raises(FieldError) as refused:
        _checked(request, limits)
    return refused.value.code.value, refused.value.field


def test_the_least_request_has_the_defaults_of_the_contract() -> None:
    message = _checked(_request())
    assert (message.tenant, message.message, message.traceparent) == ("tenant-a", "Hello", "tp")
    assert (message.timeout_s, message.priority, message.max_turns) == (None, Priority.FOREGROUND, 0)
    assert (message.idempotency_key, message.session_key, message.queue_mode, message.provenance_json) == ("",) * 4
    assert (message.metadata, message.tools_allow) == ({}, ())


def test_every_field_that_is_honoured_arrives() -> None:
    request = _request(
        agent_id="research",
        session_key="Some Key",
        session_id="ses",
        idempotency_key="order 17",
        model="openai/gpt",
        timeout=Duration(seconds=90, nanos=500_000_000),
        lane="cron",
        priority=agent_pb2.PRIORITY_BACKGROUND,
        queue_mode=agent_pb2.QUEUE_MODE_FOLLOWUP,
        channel="mail",
        to="them",
        account_id="acc",
        thread_id="th",
        extra_system_prompt="Be brief.",
        label="nightly",
        provenance=agent_pb2.Provenance(kind=agent_pb2.PROVENANCE_KIND_INTER_SESSION, source_session_key="sk"),
        tools_allow=["read", "exec"],
        tools_deny=["exec"],
        max_turns=3,
        max_output_tokens=500,
        temperature=0.0,
        seed=0,
        response_schema={"type": "object", "maxProperties": 3},
        parent_run_id="run_p",
        metadata={"k": "v"},
    )
    message = _checked(request)
    assert message == NewMessage(
        tenant="tenant-a",
        message="Hello",
        request_hash=request_hash(request),
        hash_version=1,
        idempotency_key="order 17",
        agent_id="research",
        session_key="Some Key",
        session_id="ses",
        model="openai/gpt",
        timeout_s=90.5,
        lane="cron",
        priority=Priority.BACKGROUND,
        queue_mode="followup",
        channel="mail",
        to="them",
        account_id="acc",
        thread_id="th",
        extra_system_prompt="Be brief.",
        label="nightly",
        tools_allow=("read", "exec"),
        tools_deny=("exec",),
        max_turns=3,
        max_output_tokens=500,
        temperature=0.0,
        seed=0,
        response_schema_json='{"maxProperties":3,"type":"object"}',
        parent_run_id="run_p",
        provenance_json='{"kind": "inter_session", "source_session_key": "sk"}',
        traceparent="tp",
        metadata={"k": "v"},
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("deliver", True),
        ("best_effort_deliver", True),
        ("prompt_mode", agent_pb2.PROMPT_MODE_FULL),
        ("bootstrap_context_mode", agent_pb2.BOOTSTRAP_CONTEXT_MODE_LIGHTWEIGHT),
    ],
)
def test_a_field_whose_capability_has_not_landed_is_refused_by_name(field: str, value: Any) -> None:
    assert _refusal(_request(**{field: value})) == ("NOT_AVAILABLE_YET", field)


@pytest.mark.parametrize(
    "field", ["thinking", "priority", "queue_mode", "prompt_mode", "bootstrap_context_mode", "provenance.kind"]
)
@pytest.mark.parametrize("number", [99, -1])
def test_an_enum_value_that_is_not_defined_is_refused_by_name(field: str, number: int) -> None:
    request = _request()
    *path, last = field.split(".")
    target: Any = request
    for name in path:
        target = getattr(target, name)
    setattr(target, last, number)
    assert _refusal(request) == ("ENUM_UNKNOWN", field)


@pytest.mark.parametrize("text", ["", " ", "\n\t  "])
def test_a_message_without_text_is_empty(text: str) -> None:
    assert _refusal(_request(message=text)) == ("MESSAGE_EMPTY", "message")


@pytest.mark.parametrize(
    ("field", "limit_bytes", "reason"),
    [
        ("message", 1024 * 1024, "MESSAGE_TOO_LONG"),
        ("session_key", 512, "SESSION_KEY_MALFORMED"),
        ("idempotency_key", 128, "IDEMPOTENCY_KEY_MALFORMED"),
        ("extra_system_prompt", 64 * 1024, "FIELD_INVALID"),
        ("agent_id", 512, "FIELD_INVALID"),
        ("session_id", 512, "FIELD_INVALID"),
        ("model", 512, "FIELD_INVALID"),
        ("lane", 512, "FIELD_INVALID"),
        ("channel", 512, "FIELD_INVALID"),
        ("to", 512, "FIELD_INVALID"),
        ("account_id", 512, "FIELD_INVALID"),
        ("thread_id", 512, "FIELD_INVALID"),
        ("label", 512, "FIELD_INVALID"),
        ("parent_run_id", 512, "FIELD_INVALID"),
    ],
)
def test_a_text_may_have_exactly_its_limit_in_bytes(field: str, limit_bytes: int, reason: str) -> None:
    fitting = "ü" * (limit_bytes // 2)
    assert getattr(_checked(_request(**{field: fitting})), field) == fitting
    assert _refusal(_request(**{field: fitting + "x"})) == (reason, field)


def test_limits_are_settings() -> None:
    limits = Limits(message_bytes=4, metadata_keys=0)
    assert _refusal(_request(), limits) == ("MESSAGE_TOO_LONG", "message")
    assert _refusal(_request(message="Hi", metadata={"k": ""}), limits) == ("FIELD_INVALID", "metadata")


def test_metadata_has_limits_on_keys_and_texts() -> None:
    most = {f"{number:0512d}": "v" * 512 for number in range(32)}
    assert _checked(_request(metadata=most)).metadata == most
    assert _refusal(_request(metadata=most | {"one more": ""})) == ("FIELD_INVALID", "metadata")
    assert _refusal(_request(metadata={"k" * 513: ""})) == ("FIELD_INVALID", "metadata")
    assert _refusal(_request(metadata={"k": "ü" * 257})) == ("FIELD_INVALID", "metadata")


@pytest.mark.parametrize("field", ["tools_allow", "tools_deny"])
def test_lists_of_tools_have_limits(field: str) -> None:
    assert _refusal(_request(**{field: ["x"] * 1025})) == ("FIELD_INVALID", field)
    assert _refusal(_request(**{field: ["x" * 513]})) == ("FIELD_INVALID", field)


@pytest.mark.parametrize("character", ["\0", "\n", "\x7f", "\x85"])
def test_keys_have_no_control_characters(character: str) -> None:
    assert _refusal(_request(session_key=f"a{character}b")) == ("SESSION_KEY_MALFORMED", "session_key")
    assert _refusal(_request(idempotency_key=f"a{character}b")) == ("IDEMPOTENCY_KEY_MALFORMED", "idempotency_key")


def test_an_idempotency_key_is_not_blank() -> None:
    assert _refusal(_request(idempotency_key="  ")) == ("IDEMPOTENCY_KEY_MALFORMED", "idempotency_key")


@pytest.mark.parametrize(
    "timeout",
    [
        Duration(seconds=-1),
        Duration(nanos=-1),
        Duration(seconds=MAX_S + 1),
        Duration(seconds=MAX_S, nanos=1),
        Duration(seconds=2**63 - 1, nanos=999_999_999),
        Duration(seconds=-(2**63)),
        Duration(seconds=1, nanos=-5),
        Duration(seconds=1, nanos=1_000_000_000),
        Duration(nanos=2**31 - 1),
    ],
)
def test_a_duration_outside_of_0_to_10_000_years_is_refused(timeout: Duration) -> None:
    assert _refusal(_request(timeout=timeout)) == ("TIMEOUT_INVALID", "timeout")


def test_0_and_10_000_years_are_durations_and_a_nanosecond_is_not_0() -> None:
    assert _checked(_request(timeout=Duration())).timeout_s == 0
    assert _checked(_request(timeout=Duration(seconds=MAX_S))).timeout_s == MAX_S
    smallest = _checked(_request(timeout=Duration(nanos=1))).timeout_s
    assert smallest is not None
    assert smallest > 0


@pytest.mark.parametrize("number", [0, -1, -(2**31)])
@pytest.mark.parametrize("field", ["max_turns", "max_output_tokens"])
def test_a_limit_of_the_model_below_1_is_refused(field: str, number: int) -> None:
    assert _refusal(_request(**{field: number})) == ("FIELD_INVALID", field)


@pytest.mark.parametrize("temperature", [-0.1, 2.1, math.inf, -math.inf, math.nan])
def test_a_temperature_that_no_model_takes_is_refused(temperature: float) -> None:
    assert _refusal(_request(temperature=temperature)) == ("FIELD_INVALID", "temperature")


@pytest.mark.parametrize(
    "schema",
    [{"description": "x" * 70_000}, {"enum": [0] * 40_000}, {"maximum": math.nan}, {"a": [{"b": math.inf}]}],
    ids=["too long", "too many", "not a number", "infinite"],
)
def test_a_schema_that_is_too_large_or_no_json_is_refused(schema: dict[str, Any]) -> None:
    assert _refusal(_request(response_schema=schema)) == ("FIELD_INVALID", "response_schema")


def test_an_empty_schema_is_not_an_absent_one() -> None:
    assert _checked(_request(response_schema={})).response_schema_json == "{}"
    assert _checked(_request()).response_schema_json == ""


def test_absent_parameters_are_not_zero() -> None:
    message = _checked(_request())
    assert (message.max_turns, message.max_output_tokens, message.temperature, message.seed) == (0, 0, None, None)
    edges = _checked(_request(max_output_tokens=2**31 - 1, temperature=2.0, seed=-(2**63)))
    assert (edges.max_output_tokens, edges.temperature, edges.seed) == (2**31 - 1, 2.0, -(2**63))


def test_texts_of_the_provenance_have_limits() -> None:
    provenance = agent_pb2.Provenance(source_tool="x" * 513)
    assert _refusal(_request(provenance=provenance)) == ("FIELD_INVALID", "provenance.source_tool")


def test_the_hash_is_over_all_fields_but_the_key() -> None:
    request = _request(metadata={"a": "1", "b": "2"}, idempotency_key="k")
    assert request_hash(_request(metadata={"b": "2", "a": "1"}, idempotency_key="other")) == request_hash(request)
    assert request_hash(_request(metadata={"a": "1", "b": "3"}, idempotency_key="k")) != request_hash(request)
    assert request_hash(_request(timeout=Duration())) != request_hash(_request())


def test_the_hash_covers_fields_that_this_server_does_not_know() -> None:
    unknown = _request().SerializeToString() + b"\xba\x3e\x01a"
    other = _request().SerializeToString() + b"\xba\x3e\x01b"
    parse: Callable[[bytes], agent_pb2.AgentRequest] = agent_pb2.AgentRequest.FromString
    assert len({request_hash(_request()), request_hash(parse(unknown)), request_hash(parse(other))}) == 3


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_ENUMS = st.integers(-3, 12)
_REQUESTS = st.builds(
    agent_pb2.AgentRequest,
    message=st.just("Hello") | _TEXTS,
    attachments=st.lists(st.builds(agent_pb2.Attachment, data=st.binary(max_size=4)), max_size=1),
    session_key=_TEXTS,
    idempotency_key=_TEXTS,
    model=_TEXTS,
    thinking=st.just(0) | _ENUMS,
    timeout=st.none()
    | st.builds(Duration, seconds=st.integers(-(2**63), 2**63 - 1), nanos=st.integers(-(2**31), 2**31 - 1))
    | st.builds(Duration, seconds=st.integers(0, MAX_S), nanos=st.integers(0, 999_999_999)),
    priority=_ENUMS,
    queue_mode=_ENUMS,
    prompt_mode=st.just(0) | _ENUMS,
    deliver=st.booleans(),
    metadata=st.dictionaries(_TEXTS, _TEXTS, max_size=3),
    response_schema=st.none() | st.dictionaries(_TEXTS, st.none() | st.floats() | st.lists(_TEXTS), max_size=2),
    max_turns=st.none() | st.integers(-(2**31), 2**31 - 1),
    seed=st.none() | st.integers(-(2**63), 2**63 - 1),
    temperature=st.none() | st.floats(),
    max_output_tokens=st.none() | st.integers(-(2**31), 2**31 - 1),
    tools_allow=st.lists(_TEXTS, max_size=3),
    provenance=st.none() | st.builds(agent_pb2.Provenance, kind=_ENUMS, source_tool=_TEXTS),
)


def _gives_a_message_or_a_field_error(request: agent_pb2.AgentRequest) -> None:
    try:
        outcome: NewMessage | FieldError = _checked(request)
    except FieldError as refused:
        outcome = refused
    assert outcome.field if isinstance(outcome, FieldError) else outcome.message.strip() or outcome.attachments


@given(_REQUESTS)
def test_any_request_gives_a_message_or_a_field_error(request_: agent_pb2.AgentRequest) -> None:
    _gives_a_message_or_a_field_error(request_)


@given(_REQUESTS, st.data())
def test_any_damaged_request_that_still_parses_does_too(request_: agent_pb2.AgentRequest, data: st.DataObject) -> None:
    encoded = bytearray(request_.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        if encoded:
            encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    try:
        damaged = agent_pb2.AgentRequest.FromString(bytes(encoded))
    except DecodeError:
        return
    _gives_a_message_or_a_field_error(damaged)
