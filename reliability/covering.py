"""A pytest plugin: which lines of the core each test runs, and how long it takes, written to what --covering names.

{"seconds": {test: seconds}, "lines": {file: {test: [lines]}}}, of tests that pass; importing runs those of "".
"""

import json
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

LEFT_OUT = ["*/lab/*", "*/extras/*", "*/hopper/*", "*_kernels.py"]
_watched = coverage.Coverage(data_file=None, config_file=False, source=["liespline"], omit=LEFT_OUT)
_seconds: dict[str, float] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--covering", type=Path, required=True)


def pytest_sessionstart() -> None:
    _watched.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _watched.switch_context(item.nodeid)
    result = yield
    _watched.switch_context("")
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + (report.duration if report.passed else float("inf"))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    _watched.stop()
    data = _watched.get_data()
    good = {test: round(seconds, 3) for test, seconds in _seconds.items() if seconds < float("inf")}
    lines: dict[str, dict[str, list[int]]] = {}
    for file in data.measured_files():
        tests = lines[file.rpartition("src/liespline/")[2]] = {}
        for line, contexts in data.contexts_by_lineno(file).items():
            for test in contexts:
                tests.setdefault(test if test in good else "", []).append(line)
    session.config.getoption("covering").write_text(json.dumps({"seconds": good, "lines": lines}))
