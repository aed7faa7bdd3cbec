"""Every reason of the contract's error table: which test covers it, or why it cannot occur yet."""

import ast
from pathlib import Path

from lanewayd.errors import ErrorCode

REASONS = "test_reasons.py::test_a_request_with_a_bad_field_is_refused_and_changes_nothing"
FAULTS = "test_provider_faults.py::test_a_fault_of_the_model_service_ends_as_promised"
OUTCOMES = "test_outcomes.py::test_an_outcome_reads_the_same_through_wait_get_list_and_log"

COVERED = {
    "MALFORMED_MESSAGE": "test_reasons.py::test_bytes_that_are_no_message_are_refused_with_a_reason",
    "MESSAGE_EMPTY": REASONS,
    "MESSAGE_TOO_LONG": REASONS,
    "ATTACHMENT_TOO_LARGE": "test_attachments.py::test_a_file_that_cannot_be_is_refused_and_changes_nothing",
    "SESSION_KEY_MALFORMED": REASONS,
    "IDEMPOTENCY_KEY_MALFORMED": REASONS,
    "TIMEOUT_INVALID": REASONS,
    "ENUM_UNKNOWN": REASONS,
    "MODEL_UNKNOWN": REASONS,
    "FIELD_INVALID": REASONS,
    "PAGE_TOKEN_INVALID": "test_sessions.py::test_a_token_is_good_for_its_own_list_only",
    "RUN_NOT_FOUND": "test_reasons.py::test_a_message_for_what_is_not_there_is_refused_and_changes_nothing",
    "SESSION_NOT_FOUND": "test_reasons.py::test_a_message_for_what_is_not_there_is_refused_and_changes_nothing",
    "AGENT_NOT_FOUND": "test_reasons.py::test_a_message_for_what_is_not_there_is_refused_and_changes_nothing",
    "ENTRY_NOT_FOUND": "test_sessions.py::test_a_place_that_an_entry_does_not_have_is_refused",
    "IDEMPOTENCY_KEY_REUSED": "test_reasons.py::test_a_key_that_was_used_for_another_request_is_refused",
    "MODEL_NOT_CONFIGURED": "test_reasons.py::test_without_a_model_the_refusal_names_the_settings",
    "SESSION_ARCHIVED": "test_session_archive.py::test_an_archived_session_takes_no_message_until_it_is_taken_back",
    "SESSION_ACTIVE": "test_reasons.py::test_a_session_at_work_is_not_reset_or_deleted_without_force",
    "NESTED_IN_SESSION": "test_reasons_nesting.py::test_a_child_may_not_use_the_session_of_an_ancestor",
    "CURSOR_PRUNED": "test_subscribe_edges.py::test_events_that_retention_took_are_refused_and_the_rest_is_read",
    "CURSOR_AHEAD": "test_subscribe_edges.py::test_a_seq_that_is_not_there_yet_is_refused_with_what_there_is",
    "TENANT_LIMIT": "test_session_import.py::test_a_tenant_has_few_imports_open_at_once",
    "QUEUE_FULL": "test_reasons.py::test_a_full_queue_refuses_and_has_room_again_later",
    "DRAINING": "test_reasons.py::test_a_draining_server_refuses_messages_with_a_hint_when_to_repeat",
    "STORE_UNAVAILABLE": (
        "test_reasons.py::test_a_store_that_cannot_commit_refuses_and_the_key_tells_later_what_became_of_the_call"
    ),
    "NOT_AVAILABLE_YET": "test_reasons.py::test_a_field_whose_capability_has_not_landed_is_refused_by_name",
    "PROVIDER_UNREACHABLE": FAULTS,
    "PROVIDER_AUTH": FAULTS,
    "PROVIDER_MODEL_NOT_FOUND": FAULTS,
    "PROVIDER_BILLING": FAULTS,
    "PROVIDER_REQUEST_REJECTED": FAULTS,
    "PROVIDER_RATE_LIMITED": FAULTS,
    "PROVIDER_UNAVAILABLE": FAULTS,
    "PROVIDER_BAD_RESPONSE": FAULTS,
    "PROVIDER_STREAM_CUT": FAULTS,
    "PROVIDER_STALLED": "test_provider_faults_in_time.py::test_a_stalled_model_is_tried_once_more_if_it_showed_nothing",
    "PROVIDER_REFUSED": FAULTS,
    "CONTEXT_OVERFLOW": FAULTS,
    "RUN_DEADLINE": OUTCOMES,
    "RUN_STALLED": "test_liveness.py::test_a_silent_tool_is_told_of_and_ends_its_run_after_a_quarter_of_an_hour",
    "RECOVERY_EXHAUSTED": "test_outcomes.py::test_a_run_that_the_server_died_of_three_times_is_given_up",
    "SESSION_BUSY": OUTCOMES,
    "MAX_TURNS": OUTCOMES,
    "OUTPUT_SCHEMA_MISMATCH": OUTCOMES,
    "BUDGET_EXCEEDED": OUTCOMES,
    "TOOLS_EMPTY": OUTCOMES,
    "INTERNAL": OUTCOMES,
}

WAITS_FOR = {
    "APPROVAL_NOT_FOUND": "approvals",
    "APPROVAL_RESOLVED": "approvals",
    "APPROVAL_WITHDRAWN": "approvals",
    "APPROVAL_EXPIRED": "approvals",
    "TOOL_PROVIDER_LOST": "tools over ToolService.Serve",
}

CONTRACT = [
    "MALFORMED_MESSAGE", "MESSAGE_EMPTY", "MESSAGE_TOO_LONG", "ATTACHMENT_TOO_LARGE", "SESSION_KEY_MALFORMED",
    "IDEMPOTENCY_KEY_MALFORMED", "TIMEOUT_INVALID", "ENUM_UNKNOWN", "PAGE_TOKEN_INVALID", "MODEL_UNKNOWN",
    "FIELD_INVALID", "RUN_NOT_FOUND", "SESSION_NOT_FOUND", "AGENT_NOT_FOUND", "ENTRY_NOT_FOUND", "APPROVAL_NOT_FOUND",
    "IDEMPOTENCY_KEY_REUSED", "MODEL_NOT_CONFIGURED", "SESSION_ACTIVE", "NESTED_IN_SESSION", "APPROVAL_RESOLVED",
    "APPROVAL_WITHDRAWN", "APPROVAL_EXPIRED", "CURSOR_PRUNED", "CURSOR_AHEAD", "QUEUE_FULL", "TENANT_LIMIT",
    "DRAINING", "STORE_UNAVAILABLE", "NOT_AVAILABLE_YET", "PROVIDER_UNREACHABLE", "PROVIDER_AUTH",
    "PROVIDER_MODEL_NOT_FOUND", "PROVIDER_BILLING", "PROVIDER_REQUEST_REJECTED", "PROVIDER_RATE_LIMITED",
    "PROVIDER_UNAVAILABLE", "PROVIDER_BAD_RESPONSE", "PROVIDER_STREAM_CUT", "PROVIDER_STALLED", "PROVIDER_REFUSED",
    "CONTEXT_OVERFLOW", "RUN_DEADLINE", "RECOVERY_EXHAUSTED", "SESSION_BUSY", "TOOL_PROVIDER_LOST", "BUDGET_EXCEEDED",
    "MAX_TURNS", "OUTPUT_SCHEMA_MISMATCH", "TOOLS_EMPTY", "INTERNAL",
]  # fmt: skip
"""The table of the contract, row by row."""

BEYOND = ["SESSION_ARCHIVED", "RUN_STALLED"]
"""Reasons that the specification asks for (R-1.20; R-2.118) and the table has no name for."""


def test_every_reason_of_the_contract_has_a_test_or_a_capability_that_it_waits_for() -> None:
    assert sorted([*COVERED, *WAITS_FOR]) == sorted([*CONTRACT, *BEYOND])
    assert COVERED.keys().isdisjoint(WAITS_FOR)


def test_every_reason_that_the_service_knows_is_listed_here() -> None:
    known = {code.value for code in ErrorCode}
    assert known <= {*CONTRACT, *BEYOND}
    assert set(COVERED) <= known
    assert known <= set(COVERED)


def test_the_tests_that_are_named_exist_and_name_the_reason() -> None:
    sources = {path.name: path.read_text() for path in Path(__file__).parent.glob("test_*.py")}
    faults = (Path(__file__).parent / "provider_faults.py").read_text()
    functions = {
        (file, node.name)
        for file, source in sources.items()
        for node in ast.parse(source).body
        if isinstance(node, ast.AsyncFunctionDef)
    }
    for reason, place in COVERED.items():
        file, _, name = place.partition("::")
        assert (file, name) in functions, place
        assert f'"{reason}"' in sources[file] + (faults if place == FAULTS else ""), place
