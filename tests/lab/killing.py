"""Work that is killed with SIGKILL at random moments and started again, until it is done.

What must hold each time: no file under its final name is broken, what was finished stays as it was and is not
done again, and the end is the same as that of work nobody killed.
"""

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from liespline.lab.data.files import DataError

DONE, FAILED, AGAIN = 0, 78, 79
PATIENCE = 120  # seconds, before work counts as hanging
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Work:
    """Something a user starts, and starts again after a kill."""

    name: str
    go: Callable[[Path], int]
    """Begin or go on in a folder; DONE, or AGAIN when another process still works there."""
    end: Callable[[Path], dict[str, str]]
    """What it is worth in the end, as digests."""
    kept: Callable[[Path], dict[str, str]] = lambda folder: {}
    """What is finished now and must be found unchanged later."""
    broken: Callable[[Path], list[str]] = lambda folder: []
    """Files that a reader would take up but that are not whole."""
    unkilled: Callable[[Path], int] | None = None
    """Another way to the same end, for work in processes of its own: those cannot be watched, and start slowly."""
    seconds: float | None = None
    """How long such work takes."""
    moments: tuple[tuple[str, int], ...] = ()
    """When the first kills come: at the number-th event of a file, counted anew after each kill."""


@dataclass
class Tally:
    """What came of the kills."""

    kills: int = 0
    attempts: int = 0
    moments: dict[str, int] = field(default_factory=dict)
    crashes: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_event(folder: Path, number: int, delay: float | None = None, name: str = "") -> Callable[[], None]:
    """Die at the number-th time that a file under the folder is opened to write, renamed, synced or removed.

    With a delay, die so many seconds later: in the middle of the write that begins there. With a name, only files are
    counted that end with it, and when they are synced is not.
    """
    seen = [0]

    def count() -> None:
        seen[0] += 1
        if seen[0] == number:
            threading.Timer(delay, die).start() if delay else die()

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        changes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir")
        changes = changes or (event == "open" and isinstance(arguments[2], int) and bool(arguments[2] & WRITING))
        if changes and str(arguments[0]).startswith(str(folder)) and str(arguments[0]).endswith(name):
            count()

    def arm() -> None:
        if not name:
            sync = os.fsync
            os.fsync = lambda descriptor: (count(), sync(descriptor))[1]
        sys.addaudithook(hook)

    return arm


def attempt(work: Work, folder: Path, arm: Callable[[], None], seconds: float | None, alone: bool) -> int | None:
    """Work in a process, killed after some seconds if given, with its own children or `alone`; None if it hangs."""
    child = os.fork()
    if child == 0:
        os.setsid()
        with open(folder.with_suffix(".said"), "a") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        code = FAILED
        try:
            arm()
            code = work.go(folder)
        except BaseException as error:
            print(type(error).__name__, error, file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    begun = time.monotonic()
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        spent = time.monotonic() - begun
        if spent > (PATIENCE if seconds is None else seconds):
            (os.kill if alone else os.killpg)(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            return None if seconds is None else status
        time.sleep(0.002)
    return os.waitpid(child, 0)[1]


class Campaign:
    """One kind of work, killed many times."""

    def __init__(self, work: Work, root: Path, seed: int) -> None:
        self.work, self.root, self.draw, self.tally = work, root, random.Random(f"{seed} {work.name}"), Tally()
        self.moments = list(work.moments)
        root.mkdir(parents=True)
        begun = time.monotonic()
        reference = replace(work, go=work.unkilled or work.go)
        self._check(attempt(reference, root / "whole", lambda: None, None, False), root / "whole")
        self.seconds, self.expected = work.seconds or time.monotonic() - begun, work.end(root / "whole")

    def run(self, kills: int) -> Tally:
        """So many kills; a folder whose work survives is compared with the whole one, and a new one begun."""
        round_ = 0
        while self.tally.kills < kills:
            folder = self.root / f"killed-{round_}"
            done = False
            while not done:
                done = self._once(folder, self.tally.kills < kills)
            self._compare(folder)
            round_ += 1
        return self.tally

    def _compare(self, folder: Path) -> None:
        """What the work ended with, against what it ends with when nobody kills it."""
        try:
            found = self.work.end(folder)
        except DataError as error:
            self.tally.lost.append(f"{folder}: {error}")
            return
        if found != self.expected:
            different = [name for name in self.expected if found.get(name) != self.expected[name]]
            self.tally.lost.append(f"{folder}: other results than without kills: {different or set(found)}")

    def _once(self, folder: Path, kill: bool) -> bool:
        """One attempt, and what it left; whether the folder is done with."""
        before = self.work.kept(folder)
        arm, seconds, alone = self._moment(folder) if kill else ((lambda: None), None, False)
        status = attempt(self.work, folder, arm, seconds, alone)
        self.tally.attempts += 1
        killed = status is not None and os.WIFSIGNALED(status)
        self.tally.kills += killed
        after = self.work.kept(folder)
        self.tally.lost += [
            f"{folder}: {name} was done again or lost" for name in before if after.get(name) != before[name]
        ]
        self.tally.broken += [f"{folder}: {name}" for name in self.work.broken(folder)]
        return not killed and self._check(status, folder)

    def _check(self, status: int | None, folder: Path) -> bool:
        """Whether the work is done; anything but done and killed is noted and ends it too."""
        if status is None:
            self.tally.hangs.append(str(folder))
            return True
        code = os.waitstatus_to_exitcode(status)
        if code == AGAIN:
            time.sleep(0.5)
            return False
        if code != DONE:
            said = folder.with_suffix(".said").read_text()[-300:]
            self.tally.crashes.append(f"{folder}: ended with {code}: {said}")
        return True

    def _moment(self, folder: Path) -> tuple[Callable[[], None], float | None, bool]:
        """When to kill: at the work's own moments, then by the clock, at a file event, or shortly after one."""
        if self.moments:
            name, number = self.moments.pop(0)
            self.tally.moments[name] = number
            return at_event(folder, number, name=name), None, False
        kind = self.draw.choice(["clock", "alone"] if self.work.unkilled else ["clock", "event", "shortly after"])
        self.tally.moments[kind] = self.tally.moments.get(kind, 0) + 1
        if kind in ("clock", "alone"):
            return (lambda: None), self.draw.uniform(0, 1.05 * self.seconds), kind == "alone"
        delay = None if kind == "event" else self.draw.uniform(0.0001, 0.004)
        return at_event(folder, int(self.draw.triangular(1, 40, 4)), delay), None, False
