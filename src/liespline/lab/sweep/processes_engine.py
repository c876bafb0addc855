"""Runs as processes of this machine, several at a time: the default."""

from __future__ import annotations

import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

from .one_run import ATTEMPTS, PATIENCE, command, verdict
from .plan import Planned, Report


def do_all(waiting: list[Planned], jobs: int | None, report: Report) -> list[str]:
    """Train all, `jobs` at a time (one, if nobody says); the names of those that failed."""
    processes = Processes()
    with ThreadPoolExecutor(jobs or 1) as pool:
        try:
            ended = list(pool.map(lambda entry: _do(entry, processes, report), waiting))
        except BaseException:  # Ctrl-C, or the end of a batch job's time
            processes.stop()
            raise
    return [entry.name for entry, fine in zip(waiting, ended, strict=True) if not fine]


def _do(entry: Planned, processes: Processes, report: Report) -> bool:
    report(entry.name, "begins" if not entry.run.last_checkpoint.exists() else "goes on")
    problem: str | None = ""
    for _ in range(ATTEMPTS):
        status, errors = processes.wait_for(command(entry.run))
        problem = verdict(entry.run, status, errors)
        if problem is None:
            report(entry.name, "done")
            return True
        if processes.stopped:
            report(entry.name, "stopped; it goes on when the sweep is started again")
            return False
        if status == 2:  # a clear error: trying again would not help
            break
    report(entry.name, f"failed: {problem}")
    return False


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
