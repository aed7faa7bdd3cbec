"""Which credential a call uses, who stays with which one, and what is written down of it (spec 04, 4)."""

import logging
from datetime import timedelta

import pytest
from tests.fakes.fake_clock import FakeClock

from lanewayd.errors import StoreUnavailable
from lanewayd.messages import FailureClass
from lanewayd.models.interface import Cooling
from lanewayd.models.profiles import CredentialProfiles, ProfileGroup


class Records:
    """Implements CredentialRecords in memory; `is_down`: as a store that cannot be reached."""

    def __init__(self) -> None:
        self.health: dict[tuple[str, str], str] = {}
        self.pins: dict[tuple[str, str], str] = {}
        self.is_down = False

    async def credential_health(self) -> list[tuple[str, str, str]]:
        self._check()
        return [(*names, state) for names, state in self.health.items()]

    async def save_credential_health(self, provider: str, profile: str, state_json: str) -> None:
        self._check()
        self.health[provider, profile] = state_json

    async def credential_pin(self, session_id: str, provider: str) -> str:
        self._check()
        return self.pins.get((session_id, provider), "")

    async def pin_credential(self, session_id: str, provider: str, profile: str) -> None:
        self._check()
        self.pins[session_id, provider] = profile

    def _check(self) -> None:
        if self.is_down:
            raise StoreUnavailable("down")


class Keys:
    """Implements Credentials: the profile `new` has another key each time it is read anew."""

    def __init__(self) -> None:
        self.marks: dict[str, str] = {}

    def reread(self, _provider: str, profile: str) -> bool:
        return profile == "new"

    def mark(self, _provider: str, profile: str) -> str:
        return self.marks.get(profile, "first")


@pytest.fixture
def records() -> Records:
    return Records()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def profiles_of(
    records: Records, clock: FakeClock, *names: str, is_explicit: bool = True, keys: Keys | None = None
) -> CredentialProfiles:
    groups = {"acme": ProfileGroup(names, is_explicit)}
    profiles = CredentialProfiles(groups, clock=clock, credentials=keys or Keys())
    await profiles.open(records)
    return profiles


async def test_a_provider_with_one_key_has_one_credential_without_a_name_that_nothing_closes(
    records: Records, clock: FakeClock
) -> None:
    profiles = await profiles_of(records, clock, "work")
    for provider in ("acme", "scripted"):
        assert profiles.count(provider) == 1
        await profiles.failed(provider, "m", "", FailureClass.BILLING)
        await profiles.succeeded(provider, "")
        assert await profiles.pick(provider, "m", session_id="s") == ""
        assert await profiles.pick(provider, "m", session_id="s", tried={""}) is None
    assert not records.health
    assert not records.pins


async def test_the_first_of_the_order_is_used_and_the_next_when_it_was_tried(
    records: Records, clock: FakeClock
) -> None:
    profiles = await profiles_of(records, clock, "work", "default")
    assert profiles.count("acme") == 2
    assert await profiles.pick("acme", "m", session_id="s") == "work"
    assert await profiles.pick("acme", "m", session_id="s", tried={"work"}) == "default"
    assert await profiles.pick("acme", "m", session_id="s", tried={"work", "default"}) is None


async def test_to_ask_when_a_credential_can_be_used_again_takes_none(records: Records, clock: FakeClock) -> None:
    profiles = await profiles_of(records, clock, "a", "b", is_explicit=False)
    assert (profiles.cooling("acme", "m"), profiles.cooling("scripted", "m")) == (None, None)
    await profiles.failed("acme", "m", "a", FailureClass.AUTH)
    assert profiles.cooling("acme", "m") is None
    await profiles.failed("acme", "m", "b", FailureClass.BILLING)
    assert profiles.cooling("acme", "m") == Cooling("a", FailureClass.AUTH, 30.0)
    assert not records.pins


async def test_a_session_stays_with_its_credential_and_others_take_the_least_recently_used(
    records: Records, clock: FakeClock
) -> None:
    profiles = await profiles_of(records, clock, "a", "b", is_explicit=False)
    picked = []
    for session in ("s1", "s2", "s1", "s1", "s3"):
        picked.append(await profiles.pick("acme", "m", session_id=session))
        await clock.advance(1)
    assert picked == ["a", "b", "a", "a", "b"]


async def test_a_session_leaves_its_credential_when_that_cools_down_and_stays_with_the_next(
    records: Records, clock: FakeClock
) -> None:
    profiles = await profiles_of(records, clock, "work", "default")
    await profiles.pick("acme", "m", session_id="s")
    await profiles.failed("acme", "m", "work", FailureClass.AUTH)
    assert await profiles.pick("acme", "m", session_id="s") == "default"
    await clock.advance(31)
    assert await profiles.pick("acme", "m", session_id="s") == "default"
    assert await profiles.pick("acme", "m", session_id="another") == "work"


async def test_a_session_without_a_pin_any_more_begins_with_the_order_again(records: Records, clock: FakeClock) -> None:
    profiles = await profiles_of(records, clock, "work", "default")
    await profiles.pick("acme", "m", session_id="s", tried={"work"})
    assert await profiles.pick("acme", "m", session_id="s") == "default"
    records.pins.clear()
    assert await profiles.pick("acme", "m", session_id="s") == "work"


async def test_a_pin_to_a_profile_that_is_configured_no_more_is_none(records: Records, clock: FakeClock) -> None:
    records.pins["s", "acme"] = "gone"
    profiles = await profiles_of(records, clock, "work", "default")
    assert await profiles.pick("acme", "m", session_id="s") == "work"


async def test_a_rate_limit_of_one_model_leaves_the_credential_to_the_others(
    records: Records, clock: FakeClock
) -> None:
    profiles = await profiles_of(records, clock, "work", "default")
    await profiles.failed("acme", "m", "work", FailureClass.RATE_LIMIT)
    assert await profiles.pick("acme", "m", session_id="s1") == "default"
    assert await profiles.pick("acme", "another", session_id="s2") == "work"


async def test_when_all_cool_down_the_one_that_is_free_first_is_told(records: Records, clock: FakeClock) -> None:
    profiles = await profiles_of(records, clock, "work", "default")
    await profiles.failed("acme", "m", "work", FailureClass.BILLING)
    await clock.advance(10)
    await profiles.failed("acme", "m", "default", FailureClass.OVERLOADED)
    await clock.advance(10)
    expected = Cooling("default", FailureClass.OVERLOADED, 20)
    assert await profiles.pick("acme", "m", session_id="s") == expected
    assert await profiles.pick("acme", "m", session_id="s", tried={"default"}) == Cooling(
        "work", FailureClass.BILLING, 580
    )
    assert ("s", "acme") not in records.pins


async def test_an_answer_opens_a_closed_credential(records: Records, clock: FakeClock) -> None:
    profiles = await profiles_of(records, clock, "work", "default")
    await profiles.failed("acme", "m", "work", FailureClass.BILLING)
    await profiles.succeeded("acme", "work")
    assert await profiles.pick("acme", "m", session_id="s") == "work"
    assert "disabled" not in records.health["acme", "work"]


async def test_answers_of_healthy_credentials_write_nothing(records: Records, clock: FakeClock) -> None:
    profiles = await profiles_of(records, clock, "work", "default")
    await profiles.pick("acme", "m", session_id="s")
    await profiles.succeeded("acme", "work")
    await profiles.failed("acme", "m", "work", FailureClass.FORMAT)
    assert not records.health


async def test_the_next_process_knows_what_is_closed(records: Records, clock: FakeClock) -> None:
    first = await profiles_of(records, clock, "work", "default")
    await first.failed("acme", "m", "work", FailureClass.BILLING)
    second = await profiles_of(records, clock, "work", "default")
    assert await second.pick("acme", "m", session_id="s") == "default"
    await clock.advance(600)
    assert await second.pick("acme", "m", session_id="another") == "work"


async def test_of_a_key_that_was_replaced_nothing_is_known(records: Records, clock: FakeClock) -> None:
    keys = Keys()
    first = await profiles_of(records, clock, "work", "default", keys=keys)
    await first.failed("acme", "m", "work", FailureClass.BILLING)
    keys.marks["default"] = "another"
    assert await first.pick("acme", "m", session_id="s1") == "default"
    keys.marks["work"] = "another"
    for profiles in (first, await profiles_of(records, clock, "work", "default", keys=keys)):
        assert await profiles.pick("acme", "m", session_id="s2") == "work"


async def test_what_cannot_be_understood_or_is_configured_no_more_is_left_out(
    records: Records, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    records.health = {("acme", "work"): "{", ("acme", "gone"): "{", ("gone", "work"): "{"}
    profiles = await profiles_of(records, clock, "work", "default")
    assert await profiles.pick("acme", "m", session_id="s") == "work"
    assert [record.message for record in caplog.records] == ["the health of a credential is not understood"]


async def test_a_store_that_is_down_costs_no_run_its_credential(records: Records, clock: FakeClock) -> None:
    records.is_down = True
    profiles = await profiles_of(records, clock, "work", "default")
    assert await profiles.pick("acme", "m", session_id="s") == "work"
    await profiles.failed("acme", "m", "work", FailureClass.AUTH)
    assert await profiles.pick("acme", "m", session_id="s") == "default"
    await profiles.succeeded("acme", "work")
    assert await profiles.pick("acme", "m", session_id="s") == "work"


async def test_before_the_store_is_there_and_without_one_it_works_from_memory(clock: FakeClock) -> None:
    group = ProfileGroup(("work", "default"), is_explicit=True)
    profiles = CredentialProfiles({"acme": group}, clock=clock, credentials=Keys())
    await profiles.failed("acme", "m", "work", FailureClass.AUTH)
    assert await profiles.pick("acme", "m", session_id="s") == "default"


async def test_one_line_tells_of_each_window_with_names_and_no_more(
    records: Records, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    profiles = await profiles_of(records, clock, "work", "default")
    await profiles.failed("acme", "m", "work", FailureClass.RATE_LIMIT)
    await profiles.failed("acme", "m", "work", FailureClass.RATE_LIMIT)
    await profiles.succeeded("acme", "work")
    closed, opened = (vars(record) for record in caplog.records)
    fields = {name: closed[name] for name in ("levelname", "provider", "profile", "reason", "until", "only_model")}
    assert fields == {
        "levelname": "WARNING",
        "provider": "acme",
        "profile": "work",
        "reason": "rate_limit",
        "until": (clock.now() + timedelta(seconds=30)).isoformat(timespec="seconds"),
        "only_model": "m",
    }
    assert (opened["levelname"], opened["profile"]) == ("INFO", "work")


async def test_reading_anew_tells_whether_the_credential_is_another_one(records: Records, clock: FakeClock) -> None:
    profiles = await profiles_of(records, clock, "new", "old")
    assert await profiles.refresh("acme", "new")
    assert not await profiles.refresh("acme", "old")
