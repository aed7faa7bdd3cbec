"""What is known of a key that cannot be used outlives the death of the process."""

from tests.fakes.model_answers import failure
from tests.fakes.model_server import ModelServer
from tests.processes.conftest import MakeServer

from laneway.v1 import run_pb2

TOML = """\
api_key_env = "OWN_KEY"
[models.providers.mock.profiles.work]
api_key_env = "WORK_KEY"
[auth.order]
mock = ["work", "default"]
"""
KEYS = {"WORK_KEY": "sk-work-0123456789", "OWN_KEY": "sk-own-0123456789"}


async def test_a_key_without_credit_is_not_used_after_a_kill_either_but_one_in_its_place_is(
    make_server: MakeServer, model: ModelServer
) -> None:
    server = make_server(toml=TOML, is_plain=True)
    server.variables |= KEYS
    await server.start()
    model.answer(failure(402, {"error": {"message": "insufficient credits"}}))
    await server.wait((await server.accept()).run_id)
    await server.kill()
    await server.start()
    waited = await server.wait((await server.accept()).run_id)
    assert waited.state == run_pb2.RUN_STATE_SUCCEEDED, waited.error
    await server.kill()
    server.variables["WORK_KEY"] = new_key = "sk-new-0123456789"
    await server.start()
    await server.wait((await server.accept()).run_id)
    used = [request.headers["authorization"].removeprefix("Bearer ") for request in model.requests]
    assert used == [KEYS["WORK_KEY"], KEYS["OWN_KEY"], KEYS["OWN_KEY"], new_key]
    assert not any(key in server.log for key in KEYS.values())
