"""Secrets planted in prompts, keys, tool output and environment: none in any log, span, metric or error."""

from tests.fakes.model_answers import Answer, End, calls_answer, failure, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.otlp_receiver import OtlpReceiver
from tests.fakes.service import toml_for
from tests.telemetry.conftest import MakeServer
from tests.telemetry.scraping import metrics_port, scraped_text

PROMPT, SYSTEM, KEY, IN_URL, ARGUMENT, OUTPUT, VARIABLE, HEADER, REPLY = (
    f"canary-{number}-91be04" for number in range(9)
)
EVERYWHERE = (KEY, IN_URL, VARIABLE, HEADER)
"""Secrets proper: not even in errors and events."""
CONTENT = (PROMPT, SYSTEM, ARGUMENT, OUTPUT, REPLY)


async def test_planted_secrets_are_told_nowhere(
    make_server: MakeServer, model: ModelServer, receiver: OtlpReceiver
) -> None:
    server = make_server(
        variables={
            "ACME_KEY": KEY,
            "SOME_PASSWORD": VARIABLE,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{HEADER}",
            "LANEWAY_TELEMETRY__PROMETHEUS_PORT": "0",
        }
    )
    server.toml = toml_for(model, 'api_key_env = "ACME_KEY"\n')
    await server.start()
    # `exec` prints an argument and its environment; what the model says is cut, garbled and refused with the key in it.
    quoting = {"error": {"message": f"no {KEY} at http://x/?key={IN_URL}", "code": "invalid_api_key"}}
    model.answer(
        calls_answer(("exec", {"command": f"echo {OUTPUT} {ARGUMENT}; env; exit 3"}), text=REPLY),
        calls_answer(("ledger", {"token": ARGUMENT, "surplus": OUTPUT}), (ARGUMENT, {"a": OUTPUT})),
        text_answer(REPLY),
        failure(401, quoting),
        failure(500, f"<html><title>{KEY}</title>{PROMPT}</html>".encode()),
        failure(400, quoting),
        Answer([f"data: {{broken {REPLY} {KEY}\n\n".encode()], end=End.CLOSE),
    )
    errors = []
    for _ in range(4):
        accepted = await server.accept(PROMPT, extra_system_prompt=SYSTEM, session_key="agent:main:talk")
        ended = await server.wait(accepted.run_id)
        errors.append(str(ended.error))
        for event in await server.events(accepted.run_id):
            assert not [secret for secret in EVERYWHERE if secret in str(event)]
    await receiver.until(lambda: len(receiver.named("invoke_agent main")) == 4)
    await receiver.until(lambda: "laneway.runs.ended" in receiver.metrics)
    metrics = await scraped_text(metrics_port(server.log))
    server.terminate()
    assert await server.exited() == 0
    told = {"log": server.log, "collector": str(receiver.bodies), "metrics": metrics, "errors": "\n".join(errors)}
    for place, text in told.items():
        assert text, place
        secrets = EVERYWHERE if place == "errors" else EVERYWHERE + CONTENT
        assert not [secret for secret in secrets if secret in text], place
    # The collector did get its credentials, in the header where they belong.
    assert receiver.headers[0]["authorization"] == f"Bearer {HEADER}"
