"""For the tests of other people's tools, each of which runs in an environment of its own: `make stacks`."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def pytest_configure() -> None:
    """Let torchvision be imported beside a CPU build of torch: its operators are for CUDA's, and none is called."""
    if "+cpu" not in torch.__version__:
        return
    declare = torch.library.register_fake

    def lenient(op, *given, **named):
        return (lambda function: function) if str(op).startswith("torchvision::") else declare(op, *given, **named)

    torch.library.register_fake = lenient
