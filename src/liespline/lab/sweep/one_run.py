"""One run of a sweep, on whichever machine: a process of its own, and what came of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ..runs.folder import Run

ATTEMPTS = 2
PATIENCE = 20  # seconds that a run has to end


def command(run: Run) -> list[str]:
    """The command that goes on with a run."""
    return [sys.executable, "-m", "liespline.lab.cli", "train", "--resume", str(run.path), "--quiet"]


def verdict(run: Run, status: int, errors: str) -> str | None:
    """What went wrong with a run whose process has ended, or None."""
    if status == 0 and run.complete:
        return None
    return " ".join(errors.split())[-500:] or f"exit status {status}"


def train_run(folder: str) -> str | None:
    """Train the run in a folder to its end, trying again once if its process dies; what went wrong, or None.

    Other machines call this; stopped, it stops the process too.
    """
    run, problem = Run(Path(folder)), None
    for _ in range(ATTEMPTS):
        process = subprocess.Popen(command(run), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            _, errors = process.communicate()
        except BaseException:
            process.terminate()
            process.wait(PATIENCE)
            raise
        problem = verdict(run, process.returncode, errors)
        if problem is None or process.returncode == 2:  # done, or a clear error: trying again would not help
            break
    return problem
