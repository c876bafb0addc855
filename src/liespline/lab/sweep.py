"""`liespline sweep`: many runs, several at once, each exactly once however often the sweep is started."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .config import Config, one_of
from .data import DataError
from .run import Run
from .tasks import find_task
from .train import preflight

Report = Callable[[str, str], None]
ATTEMPTS = 2


@dataclass(frozen=True)
class Planned:
    """One run of a sweep: its name and seed, what it is, and where it goes."""

    name: str
    config: Config
    run: Run


def plan(
    task: str, chosen: str, out: Path, seeds: int, changes: Mapping[str, Any], own: Mapping[str, Any]
) -> list[Planned]:
    """All runs of a task's set, seed by seed, so that every column has one run before any has two."""
    sets = find_task(task).sets
    one_of(f"set (task {task})", chosen, sets)
    runs = []
    for seed in range(seeds):
        for name, config in sets[chosen](find_task(task).defaults).items():
            config = config.updated({}, changes, **own, seed=seed)
            runs.append(Planned(f"{name} seed {seed}", config, Run(out / name / f"seed-{seed}")))
    return runs


def sweep(planned: list[Planned], jobs: int, report: Report) -> list[str]:
    """Do the runs that have no results yet, `jobs` at a time; the names of those that failed."""
    waiting = []
    for entry in planned:
        if entry.run.finished:
            report(entry.name, "done before")
        else:
            waiting.append(entry)
    if waiting:
        preflight(waiting[0].config)
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        ended = list(pool.map(lambda entry: _do(entry, report), waiting))
    return [entry.name for entry, fine in zip(waiting, ended, strict=True) if not fine]


def _do(entry: Planned, report: Report) -> bool:
    """One run in a process of its own, so that one that dies leaves the others alone."""
    try:
        if not entry.run.config_file.exists():
            with entry.run.locked():
                Run.create(entry.run.path, entry.config)
    except DataError as error:
        report(entry.name, f"left out: {error}")
        return False
    report(entry.name, "begins" if not entry.run.last_checkpoint.exists() else "goes on")
    command = [sys.executable, "-m", "liespline.lab.cli", "train", "--resume", str(entry.run.path), "--quiet"]
    for _ in range(ATTEMPTS):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0 and entry.run.finished:
            report(entry.name, "done")
            return True
        if done.returncode == 2:  # a clear error: trying again would not help
            break
    report(entry.name, f"failed: {' '.join(done.stderr.split())[-500:]}")
    return False
