"""Run pytest as often as asked, each time in a fork of a process that has already imported what takes long to import.

One line in, the seconds it may take and pytest's arguments as JSON; one exit status out.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import sys

import pytest

# Not Hypothesis, which pytest wants to import itself. The last ones are the lab's.
SLOW = ("torch", "roma", "scipy.interpolate", "scipy.linalg", "scipy.spatial.transform", "scipy.stats")
for slow in (*SLOW, "lightning.pytorch", "torchmetrics", "sklearn.metrics"):
    with contextlib.suppress(ImportError):
        importlib.import_module(slow)
MEMORY = 12 << 30  # bytes; a fault may ask for all there are

for line in sys.stdin:
    seconds, *arguments = json.loads(line)
    child = os.fork()
    if child == 0:
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silent, stream)
        signal.alarm(seconds)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        os._exit(pytest.main(arguments))
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
