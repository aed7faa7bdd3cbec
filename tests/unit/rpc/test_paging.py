"""rpc/paging.py: tokens belong to their list, pages end early rather than grow too large."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.v1 import agent_pb2, session_pb2
from lanewayd.errors import ErrorCode, FieldError
from lanewayd.rpc.limits import MAX_MESSAGE_BYTES
from lanewayd.rpc.paging import Page, PageTokens, page_size, read_page, slice_by_name

_REQUEST = agent_pb2.ListRunsRequest(label="x")


def _tokens(request: agent_pb2.ListRunsRequest = _REQUEST, tenant: str = "t", store_id: str = "s") -> PageTokens:
    return PageTokens(request, tenant=tenant, store_id=store_id)


def test_page_sizes_have_a_default_and_a_limit() -> None:
    assert [page_size(asked) for asked in (0, 1, 500, 501, 2**31 - 1)] == [50, 1, 500, 500, 500]
    with pytest.raises(FieldError) as refused:
        page_size(-1)
    assert (refused.value.code, refused.value.field) == (ErrorCode.FIELD_INVALID, "page_size")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300))
def test_a_token_gives_its_place_back_whatever_page_size_is_asked_next(place: str) -> None:
    token = _tokens().token(place)
    later = agent_pb2.ListRunsRequest(label="x", page_size=7, page_token=token)
    assert _tokens(later).place(token) == place


def test_a_token_is_refused_with_other_filters_tenant_store_or_list() -> None:
    token = _tokens().token("17")
    others = [
        _tokens(agent_pb2.ListRunsRequest(label="y")),
        _tokens(tenant="u"),
        _tokens(store_id="r"),
        PageTokens(agent_pb2.ListToolsRequest(), tenant="t", store_id="s"),
        PageTokens(session_pb2.ListSessionsRequest(), tenant="t", store_id="s"),
    ]
    for tokens in others:
        with pytest.raises(FieldError) as refused:
            tokens.place(token)
        assert (refused.value.code, refused.value.field) == (ErrorCode.PAGE_TOKEN_INVALID, "page_token")


def test_other_spellings_and_damage_of_a_token_are_refused() -> None:
    token = _tokens().token("17")
    spellings = [
        token + "=",
        token + "==",
        " " + token,
        token[:-1],
        token[1:],
        token + "A",
        token + "\n",
        "é",
        "A" * 9999,
    ]
    for spelling in [*spellings, base64.urlsafe_b64encode(b"\xff" * 20).decode()]:
        with pytest.raises(FieldError):
            _tokens().place(spelling)


@given(st.text(min_size=1))
def test_any_text_is_a_token_or_a_field_error(text: str) -> None:
    with pytest.raises(FieldError):
        _tokens().place(text)


class _Rows:
    """Numbers 1 to `count`, read in order."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.limits: list[int] = []

    async def read(self, place: str, limit: int) -> list[int]:
        self.limits.append(limit)
        after = int(place) if place else 0
        return list(range(after + 1, min(after + limit, self.count) + 1))


async def _page(rows: _Rows, *, start: str = "", size: int, description_bytes: int = 1) -> Page[agent_pb2.Tool]:
    def convert(number: int) -> agent_pb2.Tool:
        return agent_pb2.Tool(name=str(number), description="x" * description_bytes)

    return await read_page(rows.read, start=start, size=size, place_of=str, convert=convert)


@pytest.mark.parametrize(("count", "size"), [(0, 5), (4, 5), (5, 5), (6, 5), (120, 50), (120, 500), (101, 100)])
async def test_pages_together_are_all_rows_once(count: int, size: int) -> None:
    rows = _Rows(count)
    names: list[str] = []
    start = ""
    while True:
        page = await _page(rows, start=start, size=size)
        names += [item.name for item in page.items]
        assert len(page.items) <= size
        if not page.has_more:
            break
        assert len(page.items) == size
        start = page.last_place
    assert names == [str(number) for number in range(1, count + 1)]
    assert max(rows.limits) <= 50


async def test_a_page_ends_before_it_exceeds_a_message_but_has_one_item_at_least() -> None:
    page = await _page(_Rows(10), size=10, description_bytes=400_000)
    assert [item.name for item in page.items] == ["1", "2"]
    assert agent_pb2.ListToolsResponse(tools=page.items).ByteSize() < MAX_MESSAGE_BYTES
    page = await _page(_Rows(10), start="2", size=10, description_bytes=990_000)
    assert [item.name for item in page.items] == ["3"]
    assert page.has_more


def test_a_short_list_is_answered_by_name() -> None:
    named = [(name, agent_pb2.Tool(name=name)) for name in ("write", "exec", "read")]
    first = slice_by_name(named, after="", size=2)
    assert ([item.name for item in first.items], first.has_more, first.last_place) == (["exec", "read"], True, "read")
    second = slice_by_name(named, after="read", size=2)
    assert ([item.name for item in second.items], second.has_more) == (["write"], False)
