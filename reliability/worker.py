"""Run pytest as often as asked, each time in a fork of a process that has already imported what takes long to import.

One line of arguments in, one exit status out; `python worker.py SECONDS` gives each run that many.
"""

import importlib
import os
import signal
import sys

import pytest

# Not Hypothesis, which pytest wants to import itself.
for slow in ("torch", "roma", "scipy.interpolate", "scipy.linalg", "scipy.spatial.transform", "scipy.stats"):
    importlib.import_module(slow)
for slow in ("lightning.pytorch", "torchmetrics", "kornia", "sklearn.metrics"):  # the lab's
    importlib.import_module(slow)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silent, stream)
        signal.alarm(int(sys.argv[1]))
        os._exit(pytest.main(line.split()))
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
