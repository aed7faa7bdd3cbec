"""Engines that speak the protocol of the real one, without a model: quick to start, and to fail in each way."""

import os
import sys

from lanewayd.providers.local.process import ModelCommand

HEAD = "import json, os, sys, time\nspec = sys.stdin.buffer.readline()\n"
UNTIL_STDIN_ENDS = "while os.read(0, 100): pass\n"
SERVES = HEAD + 'print(json.dumps({"port": 4242}), flush=True)\n' + UNTIL_STDIN_ENDS
REFUSES = HEAD + 'print(json.dumps({"error": "no such architecture"}), flush=True)\nsys.exit(1)\n'
DIES = HEAD + "os.kill(os.getpid(), 9)\n"
SAYS_NONSENSE = HEAD + 'print("segmentation fault", flush=True)\n'
SAYS_NOTHING = HEAD + UNTIL_STDIN_ENDS


def command(program: str, *, spec: bytes = b"{}\n", **environment: str) -> ModelCommand:
    """How `program` is started, with an environment of nothing but what is given."""
    argv = (sys.executable, "-S", "-E", "-c", program)
    return ModelCommand(argv, {"PATH": os.environ["PATH"], **environment}, spec)
