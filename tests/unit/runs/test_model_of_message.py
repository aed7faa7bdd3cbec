import pytest

from lanewayd.errors import ErrorCode, FieldError, LanewayError
from lanewayd.messages import ThinkingLevel
from lanewayd.models.resolve import ModelChoice, ModelSource
from lanewayd.records import Priority, RunRequest, SessionSettings
from lanewayd.runs.model_of_message import ModelOfMessage

NOT_CONFIGURED = LanewayError(ErrorCode.MODEL_NOT_CONFIGURED, "no model is configured")


class Agents:
    """The agent has `agent/m` unless it has none. Models named `.../dull` know no thinking; `none/...` do not exist."""

    def __init__(self, *, has_model: bool = True) -> None:
        self._has_model = has_model

    def choose(self, agent_id: str, requested: str = "", *, session: str = "") -> ModelChoice:
        named = requested or session or ("agent/m" if self._has_model else "")
        if not named:
            raise NOT_CONFIGURED
        if named.startswith("none/"):
            raise FieldError(ErrorCode.MODEL_UNKNOWN, "model", named) if requested else NOT_CONFIGURED
        provider, _, model = named.partition("/")
        source = ModelSource.REQUEST if requested else ModelSource.SESSION if session else ModelSource.AGENT
        return ModelChoice(provider, model, source)

    def check_thinking(self, agent_id: str, model: str, level: ThinkingLevel) -> None:
        if model.endswith("/dull") and level is not ThinkingLevel.OFF:
            raise FieldError(ErrorCode.FIELD_INVALID, "thinking", model)


def adapted(
    settings: SessionSettings, *, requested: str = "", thinking: str = "", has_model: bool = True
) -> tuple[str, str, str]:
    """(model, who named it, thinking) of the run."""
    message = ModelOfMessage.of(Agents(has_model=has_model), "main", requested=requested, thinking=thinking)
    request = RunRequest("hi", "main", "main", Priority.NORMAL, model="", timeout_s=0, thinking=thinking)
    run = message.adapt(request, settings)
    return run.model, run.model_source, run.thinking


SET = SessionSettings(model="session/m", thinking="high")


@pytest.mark.parametrize(
    ("settings", "requested", "thinking", "expected"),
    [
        (SessionSettings(), "", "", ("agent/m", "agent", "")),
        (SessionSettings(), "own/m", "low", ("own/m", "request", "low")),
        (SET, "", "", ("session/m", "session", "high")),
        (SET, "own/m", "", ("own/m", "request", "high")),
        (SET, "", "off", ("session/m", "session", "off")),
        (SessionSettings(model="session/dull", thinking="high"), "", "", ("session/dull", "session", "high")),
    ],
)
def test_the_message_goes_before_its_session_and_that_before_the_agent(
    settings: SessionSettings, requested: str, thinking: str, expected: tuple[str, str, str]
) -> None:
    assert adapted(settings, requested=requested, thinking=thinking) == expected


def test_a_session_with_a_model_needs_none_in_the_settings() -> None:
    assert adapted(SET, has_model=False) == ("session/m", "session", "high")
    with pytest.raises(LanewayError, match="no model is configured"):
        adapted(SessionSettings(thinking="high"), has_model=False)


def test_what_the_message_itself_names_is_refused_before_the_session_is_known() -> None:
    agents = Agents()
    with pytest.raises(FieldError) as caught:
        ModelOfMessage.of(agents, "main", requested="none/m", thinking="")
    assert caught.value.code is ErrorCode.MODEL_UNKNOWN
    with pytest.raises(FieldError) as caught:
        ModelOfMessage.of(agents, "main", requested="own/dull", thinking="low")
    assert caught.value.field == "thinking"


def test_a_level_is_judged_by_the_model_that_the_session_has() -> None:
    with pytest.raises(FieldError, match="session/dull"):
        adapted(SessionSettings(model="session/dull"), thinking="low")


def test_a_session_model_that_is_gone_refuses_the_message() -> None:
    with pytest.raises(LanewayError) as caught:
        adapted(SessionSettings(model="none/m"))
    assert caught.value.code is ErrorCode.MODEL_NOT_CONFIGURED
