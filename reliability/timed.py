"""A pytest plugin: how long each test that passes takes, {test: seconds}, written to the file that --timed names."""

import json
from pathlib import Path

import pytest

_seconds: dict[str, float] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--timed", type=Path)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + (report.duration if report.passed else float("inf"))


def passed() -> dict[str, float]:
    """The seconds of those that have passed; neither failed nor left out."""
    return {test: round(seconds, 3) for test, seconds in _seconds.items() if seconds < float("inf")}


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if file := session.config.getoption("timed"):
        file.write_text(json.dumps(passed()))
