"""The system prompt of a run. Pure. Sections, skills and context files come with their issue."""

PARAGRAPH = (
    "You are an agent that works for the person or program whose messages you receive. Answer what was asked, briefly "
    "and truthfully. Use the tools you are given when they help; do not claim to have done what no tool did. When a "
    "tool fails, say so and try another way or ask. Your files live in {workspace}."
)


def system_prompt(*, workspace: str, extra: str) -> str:
    """The fixed paragraph, then `extra` after a blank line if there is any."""
    paragraph = PARAGRAPH.format(workspace=workspace)
    return f"{paragraph}\n\n{extra}" if extra.strip() else paragraph
