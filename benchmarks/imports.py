"""What importing the core costs beyond torch, in seconds: `python benchmarks/imports.py`."""

import time

import torch  # noqa: F401 (its own time does not count)

begin = time.perf_counter()
import liespline  # noqa: E402, F401

print(f"{time.perf_counter() - begin:.2f} s, at most 0.3")
