"""Run pytest as often as asked, each time in a fork of a process that has already imported what takes long to import.

One line in, the seconds it may take and pytest's arguments as JSON; one exit status out.
"""

import importlib
import json
import os
import signal
import sys

import pytest

# Not Hypothesis, which pytest wants to import itself.
for slow in ("torch", "roma", "scipy.interpolate", "scipy.linalg", "scipy.spatial.transform", "scipy.stats"):
    importlib.import_module(slow)
for slow in ("lightning.pytorch", "torchmetrics", "sklearn.metrics"):  # the lab's
    importlib.import_module(slow)

for line in sys.stdin:
    seconds, *arguments = json.loads(line)
    child = os.fork()
    if child == 0:
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silent, stream)
        signal.alarm(seconds)
        os._exit(pytest.main(arguments))
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
