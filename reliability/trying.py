"""Try mutants that were drawn, where neither git nor cosmic-ray is: which do the tests of their lines notice."""

import json
import math
import platform
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.metadata import version
from itertools import chain, repeat
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from mutations import Copy

FEWEST, FEW, PORTION = 4, 20, 15.0  # tests at first, and next; then as many as take so many seconds
QUICK, SLOWEST = 15.0, 20.0  # seconds that a change gets at first; those of a test that is left out


class Trial:
    """Mutants, what is known of each, and copies of the core of which each works on one thing at a time."""

    def __init__(self, drawn: dict[str, Any], outcomes: Path, folder: Path, jobs: int, minutes: float) -> None:
        self.drawn, self.outcomes = drawn, outcomes
        self.machine, self.seconds, self.known = read(outcomes)
        self.began = time.monotonic()
        self.end = self.began + 60 * minutes
        self.writing = threading.Lock()
        self.free: SimpleQueue[Copy] = SimpleQueue()
        for job in range(jobs):
            self.free.put(Copy(folder / str(job)))

    @contextmanager
    def copy(self) -> Iterator[Copy]:
        """One that nobody else uses meanwhile."""
        copy = self.free.get()
        try:
            yield copy
        finally:  # or the others would wait for it for ever
            self.free.put(copy)

    def say(self, **what: Any) -> None:
        """A line of outcomes."""
        with self.writing, self.outcomes.open("a") as file:
            print(json.dumps(what), file=file)

    def unchanged(self, tests: list[str]) -> dict[str, float]:
        """Which of these tests pass here without any change, and how long they take."""
        if not tests:
            return {}
        with self.copy() as copy:
            timed = copy.folder / "timed.jsonl"
            timed.write_text("")
            try:
                copy.passes(_names(tests), _limit(tests, self.drawn["seconds"]), ["--maxfail=0", "--timed", str(timed)])
                ended = dict(map(json.loads, timed.read_text().splitlines()))
            except RuntimeError:  # pytest runs none if one of them is not there
                ended = None if len(tests) > 1 else {}
        if ended is None:
            half = len(tests) // 2
            return self.unchanged(tests[:half]) | self.unchanged(tests[half:])
        # The first that has not ended has crashed or hangs.
        after = self.unchanged([test for test in tests if test not in ended][1:])
        return after | {test: seconds for test, seconds in ended.items() if seconds < SLOWEST}

    def attempt(self, number: int, most: float) -> None:
        """Plant the change, and let it face so many seconds of its tests."""
        mutant, faced = self.drawn["mutants"][number], self.known.get(number, {"killed": False, "portions": 0})
        portions = list(_portions([test for test in mutant["tests"] if test in self.seconds], self.seconds))
        killed, count = faced["killed"], faced["portions"]
        if killed or (number in self.known and count == len(portions)) or time.monotonic() > self.end:
            return
        with self.copy() as copy:
            end = min(self.end, time.monotonic() + most)
            while count < len(portions) and not killed and time.monotonic() < end:
                killed = self._notice(copy, portions[count], mutant)
                count += 1
        tests = sum(map(len, portions[:count]))
        self.known[number] = {"killed": killed, "portions": count, "tests": tests, "left": len(portions) - count}
        at = round(time.monotonic() - self.began)
        self.say(number=number, **self.known[number], at=at)
        place = f"{mutant['file']}:{mutant['line']} {mutant['operator']}"
        said = f"{number:4} {'killed' if killed else 'LIVES '} {at:6} s"
        print(f"{said}  {place}: {mutant['before']} → {mutant['after']}", flush=True)

    def _notice(self, copy: Copy, tests: list[str], mutant: dict[str, Any]) -> bool:
        """Whether these tests fail with the change and pass without it."""
        names, limit = _names(tests), _limit(tests, self.seconds)
        path = copy.source(mutant["file"])
        right = path.read_text()
        path.write_text(mutant["changed"])
        try:
            failed = _fail(copy, names, limit)
        finally:
            path.write_text(right)
        if failed and tuple(names) not in copy.sound and not _fail(copy, names, limit):
            copy.sound.add(tuple(names))
        return failed and tuple(names) in copy.sound


def _fail(copy: Copy, names: list[str], limit: int) -> bool:
    """Whether any does; tests that have other names now do not, but files that cannot be imported do."""
    try:
        return not copy.passes(names, limit)
    except RuntimeError:
        with suppress(RuntimeError):
            return not copy.passes(sorted({name.partition("::")[0] for name in names}), limit, ["--collect-only"])
        return True


def read(outcomes: Path) -> tuple[str, dict[str, float], dict[int, dict[str, Any]]]:
    """Where mutants were tried, the seconds of the tests that pass there, and the last that is known of each mutant."""
    lines = [json.loads(line) for line in outcomes.read_text().splitlines()] if outcomes.exists() else []
    first = lines[0] if lines else {"machine": "", "seconds": {}}
    return first["machine"], first["seconds"], {line.pop("number"): line for line in lines[1:]}


def run(drawn: dict[str, Any], outcomes: Path, jobs: int, minutes: float) -> None:
    """Which tests pass without any change; then every mutant with a few tests, then those that live with more."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        trial = Trial(drawn, outcomes, Path(folder), jobs, minutes)
        if not trial.seconds:
            if drawn["machine"] == here():
                trial.seconds = drawn["seconds"]
            else:
                portions = _portions(sorted(drawn["seconds"]), drawn["seconds"])
                for passed in pool.map(trial.unchanged, portions):
                    trial.seconds |= passed
            trial.say(machine=here(), seconds=trial.seconds)
            print(f"{len(trial.seconds):,} of {len(drawn['seconds']):,} tests pass here unchanged", flush=True)
        for most in (QUICK, math.inf):
            list(pool.map(trial.attempt, range(len(drawn["mutants"])), repeat(most)))


def here() -> str:
    """The machine, as far as it decides which tests pass."""
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{machine}, torch {version('torch')}"


def _portions(tests: list[str], seconds: dict[str, float]) -> Iterator[list[str]]:
    """A few tests, a few more, and then as many as take so many seconds."""
    sizes, some = chain((FEWEST, FEW), repeat(math.inf)), list[str]()
    size = next(sizes)
    for test in tests:
        some.append(test)
        if len(some) == size or sum(map(seconds.__getitem__, some)) > PORTION:
            yield some
            size, some = next(sizes), []
    if some:
        yield some


def _names(tests: list[str]) -> list[str]:
    return [test.removeprefix("tests/").replace(".py", "", 1) for test in tests]


def _limit(tests: list[str], seconds: dict[str, float]) -> int:
    return 30 + round(4 * sum(map(seconds.__getitem__, tests)))
