"""One thread a process, and the same drawn examples in every run: a failure must say something about the change."""

import pytest
import torch
from hypothesis import HealthCheck, settings

# Threads that outnumber the cores wait for each other, and a slow machine is no fault of the code.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)
