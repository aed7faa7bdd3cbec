"""How long the tests run: small in `make test`, at full length in `make soak`, which sets SOAK."""

import os


def scaled(small: int, full: int) -> int:
    """The number for this run."""
    return full if os.environ.get("SOAK") else small
