"""A pytest plugin for tests of code with a fault: --timed FILE appends a line [test, seconds] for each test.

The seconds of tests that do not pass are infinite. What was written before a crash stays. Hypothesis stops at the first
failing example, where that one fails is all one wants to know.
"""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "unshrunk",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)

_seconds: dict[str, float] = {}
_into: list[Path] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--timed", type=Path)


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("timed"):
        _into.append(file)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + (report.duration if report.passed else float("inf"))
    if report.when == "teardown":
        for path in _into:
            with path.open("a") as file:
                print(json.dumps([report.nodeid, round(_seconds[report.nodeid], 3)]), file=file)
