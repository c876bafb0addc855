"""`liespline sweep`: many runs, several at once, each exactly once however often the sweep is started."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import DataError
from ..runs.folder import Run
from ..settings import Config, one_of
from ..tasks import find_task
from ..training.start import preflight

Report = Callable[[str, str], None]
ATTEMPTS = 2
PATIENCE = 20  # seconds that a run has to end


@dataclass(frozen=True)
class Planned:
    """One run of a sweep: its name and seed, what it is, and where it goes."""

    name: str
    config: Config
    run: Run


def plan(task: str, chosen: str, out: Path, seeds: int, changes: Mapping[str, Any]) -> list[Planned]:
    """All runs of a task's set, seed by seed, so that every column has one run before any has two."""
    sets = find_task(task).sets
    one_of(f"set (task {task})", chosen, sets)
    runs = []
    for seed in range(seeds):
        for name, config in sets[chosen](find_task(task).defaults).items():
            config = config.given(**changes, seed=seed)
            runs.append(Planned(f"{name} seed {seed}", config, Run(out / name / f"seed-{seed}")))
    return runs


def sweep(planned: list[Planned], jobs: int, report: Report) -> list[str]:
    """Do what is left of the runs, `jobs` at a time; the names of those that failed."""
    waiting = []
    for entry in planned:
        if entry.run.complete:
            report(entry.name, "done before")
        else:
            waiting.append(entry)
    if waiting:
        preflight(waiting[0].config)
    processes = Processes()
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            ended = list(pool.map(lambda entry: _do(entry, processes, report), waiting))
        except BaseException:  # Ctrl-C, or the end of a batch job's time
            processes.stop()
            raise
    return [entry.name for entry, fine in zip(waiting, ended, strict=True) if not fine]


def _do(entry: Planned, processes: Processes, report: Report) -> bool:
    """One run in a process of its own, so that one that dies leaves the others alone."""
    try:
        if not entry.run.config_file.exists():
            with entry.run.locked():
                Run.create(entry.run.path, entry.config)
    except DataError as error:
        report(entry.name, f"left out: {error}")
        return False
    report(entry.name, "begins" if not entry.run.last_checkpoint.exists() else "goes on")
    for _ in range(ATTEMPTS):
        status, errors = processes.wait_for(_command(entry.run))
        if status == 0 and entry.run.complete:
            report(entry.name, "done")
            return True
        if processes.stopped:
            report(entry.name, "stopped; it goes on when the sweep is started again")
            return False
        if status == 2:  # a clear error: trying again would not help
            break
    report(entry.name, f"failed: {' '.join(errors.split())[-500:]}")
    return False


def _command(run: Run) -> list[str]:
    return [sys.executable, "-m", "liespline.lab.cli", "train", "--resume", str(run.path), "--quiet"]


class Processes:
    """The runs under way. They end with the sweep: a run that went on alone would keep its folder from the next one."""

    def __init__(self) -> None:
        self.stopped = False
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()

    def wait_for(self, command: list[str]) -> tuple[int, str]:
        """The exit status of a command, and what it wrote on stderr; nothing is begun once all were stopped."""
        with self._lock:
            if self.stopped:
                return -signal.SIGTERM, ""
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self._running.add(process)
        _, errors = process.communicate()
        with self._lock:
            self._running.discard(process)
        return process.returncode, errors

    def stop(self) -> None:
        """End all, and begin no other."""
        with self._lock:
            self.stopped = True
            running = list(self._running)
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
