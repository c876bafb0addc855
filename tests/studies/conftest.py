"""Programs of studies/ run as from a shell."""

import pytest

from studies.command import run
from truth.shell import called


@pytest.fixture
def program():
    """Run the function of a program; its exit status and what it printed, each message on one line."""

    def call(main, *arguments):
        status, out, err = called(lambda: run(main), *arguments)
        return status, out + err

    return call


@pytest.fixture
def refused(program):
    """What such a program says as it ends with status 2, in words."""

    def call(main, *arguments):
        status, said = program(main, *arguments)
        assert (status, "Traceback" in said) == (2, False), said
        return said

    return call
