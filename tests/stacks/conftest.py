"""For the tests of other people's tools, each of which runs in an environment of its own: `make stacks`."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
