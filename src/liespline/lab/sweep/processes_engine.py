"""Runs as processes of this machine: the default."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ..runs.folder import Run
from .plan import Planned

AT_ONCE = 1
POLL = 0.2  # seconds between two looks
ATTEMPTS = 2
PATIENCE = 20  # seconds that a run has to end


class Process:
    """The run in a folder, trained by a process of its own; one that dies is begun again once."""

    def __init__(self, run: Run) -> None:
        self.run, self.left, self._errors = run, ATTEMPTS, ""
        self.said = "goes on" if run.last_checkpoint.exists() else "begins"
        self._begin()

    def _begin(self) -> None:
        self.left -= 1
        self.process = subprocess.Popen(
            command(self.run), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
        )

    def done(self) -> bool:
        """Whether it has come to an end; of status 2, a clear error, trying again would not help."""
        try:
            _, self._errors = self.process.communicate(timeout=0.01)
        except subprocess.TimeoutExpired:
            return False
        if self.left and self.problem() and self.process.returncode != 2:
            self._begin()
            return False
        return True

    def problem(self) -> str | None:
        """What went wrong with the run, if anything."""
        status = self.process.returncode
        if status == 0 and self.run.complete:
            return None
        return " ".join(self._errors.split())[-500:] or f"exit status {status}"


def submit(entry: Planned) -> Process:
    """Begin a run, or go on with it."""
    return Process(entry.run)


def cancel(processes: Sequence[Process]) -> None:
    """End all: a run that went on alone would keep its folder from the next sweep."""
    for one in processes:
        one.left = 0
        one.process.terminate()
    for one in processes:
        try:
            one.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            one.process.kill()
            one.process.communicate()


def command(run: Run) -> list[str]:
    """The command that goes on with a run."""
    return [sys.executable, "-m", "liespline.lab.cli", "train", "--resume", str(run.path), "--quiet"]


def train_run(folder: str) -> str | None:
    """What a cluster's machine does: train the run in a folder to its end; what went wrong, or None."""
    process = Process(Run(Path(folder)))
    try:
        while not process.done():
            time.sleep(POLL)
    except BaseException:
        cancel([process])
        raise
    return process.problem()
