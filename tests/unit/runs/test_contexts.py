"""What is kept of the sessions that ran lately."""

from lanewayd.messages import AssistantMessage, Message, StopReason, Text, UserMessage
from lanewayd.runs.contexts import Context, Contexts


def _conversation(*texts: str) -> tuple[Message, ...]:
    messages: list[Message] = []
    for text in texts:
        messages += [UserMessage(text), AssistantMessage((Text(text),), "p", "m", StopReason.STOP)]
    return tuple(messages)


def test_a_context_is_found_under_the_entry_it_ends_with() -> None:
    contexts = Contexts()
    context = Context().grown(_conversation("a"))
    contexts.keep("s", "e2", context)

    assert contexts.take("s", "e2") == context
    assert context.messages == _conversation("a")


def test_another_entry_at_the_end_of_the_session_makes_it_unknown_for_good() -> None:
    contexts = Contexts()
    contexts.keep("s", "e2", Context().grown(_conversation("a")))

    assert contexts.take("s", "e3") is None
    assert contexts.take("s", "e2") is None


def test_an_empty_transcript_is_known_without_having_been_kept() -> None:
    assert Contexts().take("new", "") == Context()


def test_what_is_taken_is_given_back_by_who_took_it() -> None:
    contexts = Contexts()
    contexts.keep("s", "e2", Context().grown(_conversation("a")))
    contexts.take("s", "e2")

    assert len(contexts) == 0


def test_growing_counts_the_new_messages_only() -> None:
    short = Context().grown(_conversation("aaa"))
    longer = short.grown(_conversation("aaa", "bb"))

    assert longer.characters == short.characters + Context().grown(_conversation("bb")).characters
    assert longer.messages == _conversation("aaa", "bb")


def test_the_session_that_ran_longest_ago_goes_first() -> None:
    contexts = Contexts(max_sessions=2)
    context = Context().grown(_conversation("a"))
    for session_id in ("old", "middle", "old", "new"):
        contexts.keep(session_id, "e", context)

    assert contexts.take("middle", "e") is None
    assert contexts.take("old", "e") == context
    assert contexts.take("new", "e") == context


def test_characters_are_bounded_whatever_the_sessions_are() -> None:
    large = Context().grown(_conversation("x" * 1000))
    contexts = Contexts(max_characters=large.characters * 2)
    for number in range(5):
        contexts.keep(f"s{number}", "e", large)
    assert len(contexts) == 2

    contexts.keep("huge", "e", Context().grown(_conversation("x" * 10_000)))
    assert len(contexts) == 0
    contexts.keep("s", "e", large)
    assert contexts.take("s", "e") == large
