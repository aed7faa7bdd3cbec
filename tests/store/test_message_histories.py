"""Some histories of messages, in `make test`; 10,000 of them: `make soak SOAK=histories`."""

from hypothesis import settings
from tests.store.message_histories import MessageHistories

TestMessageHistories = MessageHistories.TestCase
TestMessageHistories.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)
