"""One thread per process, and the same drawn examples in every run: a failure must say something about the change."""

import shutil

import pytest
import torch
from hypothesis import HealthCheck, settings

# Threads that outnumber the cores wait for each other, and a slow machine is no fault of the code.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATH_OF_BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="session")
def browser() -> str:
    """A real browser; tests that ask for one are left out, and that is said, where there is none."""
    assert PATH_OF_BROWSER is not None
    return PATH_OF_BROWSER


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if PATH_OF_BROWSER is None:
        left_out = [item for item in items if "browser" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if PATH_OF_BROWSER is None:
        terminalreporter.write_line("Left out: tests of pages in a browser: there is no Chromium on PATH.", red=True)
