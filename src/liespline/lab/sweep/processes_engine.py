"""Runs as processes of this machine: the default."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from ..runs.folder import Run
from .plan import POLL, Planned

PATIENCE = 20  # seconds that a run has to end


class Process:
    """The run in a folder, trained by a process of its own; one that dies is begun again once."""

    def __init__(self, run: Run) -> None:
        self.run, self.process, self._again, self._errors = run, begin(run), True, ""

    def done(self) -> bool:
        """Whether it has come to an end; of status 2, a clear error, trying again would not help."""
        try:
            _, self._errors = self.process.communicate(timeout=0.01)
        except subprocess.TimeoutExpired:
            return False
        if self._again and self.result() and self.process.returncode != 2:
            self.process, self._again = begin(self.run), False
            return False
        return True

    def result(self) -> str | None:
        """What went wrong with the run, if anything."""
        status = self.process.returncode
        if status == 0 and self.run.complete:
            return None
        return " ".join(self._errors.split())[-500:] or f"exit status {status}"

    def cancel(self) -> None:
        """End it: a run that went on alone would keep its folder from the next sweep."""
        self.process.terminate()
        try:
            self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()


def submit(entry: Planned) -> Process:
    """Begin a run, or resume it."""
    return Process(entry.run)


def begin(run: Run) -> subprocess.Popen[str]:
    """A process that resumes a run; what it says of errors is kept."""
    return subprocess.Popen(
        command(run), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    )


def command(run: Run) -> list[str]:
    """The command that resumes a run."""
    return [sys.executable, "-m", "liespline.lab.cli", "train", "--resume", str(run.path), "--quiet"]


def train_run(folder: str) -> str | None:
    """What a cluster's machine does: train the run in a folder to its end; what went wrong, or None."""
    process = Process(Run(Path(folder)))
    try:
        while not process.done():
            time.sleep(POLL)
    except BaseException:
        process.cancel()
        raise
    return process.result()
