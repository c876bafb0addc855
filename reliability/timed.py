"""A pytest plugin: how long each test takes, a line [test, seconds] each in the file that --timed names.

The seconds of tests that do not pass are infinite. What was written before a crash stays.
"""

import json
from pathlib import Path

import pytest

_seconds: dict[str, float] = {}
_into: list[Path] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--timed", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    _into.append(config.getoption("timed"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + (report.duration if report.passed else float("inf"))
    if report.when == "teardown":
        with _into[0].open("a") as file:
            print(json.dumps([report.nodeid, round(_seconds[report.nodeid], 3)]), file=file)
