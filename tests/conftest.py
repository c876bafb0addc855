"""One thread a process: the tests run side by side, and threads that outnumber the cores wait for each other."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)
