"""Commands carried out side by side, by an engine: processes of this machine, a Ray cluster, or Slurm."""

import importlib
import importlib.util
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..settings import ConfigError, one_of

Report = Callable[[str, str], None]
NEEDED = {"processes": None, "ray": "ray", "slurm": "submitit"}
"""The engines, and the library that each needs (extra `cluster`)."""
POLL = 0.2  # seconds between two looks


class Job(NamedTuple):
    """`liespline WORDS`, started in the folder that we are in; a folder for logs, and the cores and GPUs it needs."""

    name: str
    words: tuple[str, ...]
    logs: Path
    cpus: int = 1
    gpus: int = 0
    begins: str = "begins"
    """What is said when it is begun."""


def carried_out(jobs: Sequence[Job], report: Report, engine: str, at_once: int) -> set[str]:
    """Carry out all jobs, so many at a time; the names of those that failed.

    Each is a process of its own, so that one that dies leaves the others alone. Folders must be on a disk that all
    machines see. An engine is a module: `submit(job)` gives what has `done()`, `cancel()` and `result()`, which is what
    went wrong with a job that has ended, or None.
    """
    submit, waiting, running, failed = find_engine(engine).submit, list(jobs), dict[str, Any](), set[str]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                job = waiting.pop(0)
                running[job.name] = submit(job)
                report(job.name, job.begins)
            time.sleep(POLL)
            for name in [name for name, job in running.items() if job.done()]:
                problem = problem_of(running.pop(name))
                failed |= {name} if problem else set()
                report(name, f"failed: {problem}" if problem else "done")
    except BaseException:  # Ctrl-C, or the end of a batch job's time
        for name, job in running.items():
            job.cancel()
            report(name, "stopped; start again to resume it")
        raise
    return failed


def problem_of(job: Any) -> str | None:
    """What went wrong with a job that has ended, if anything; its machine may have gone away."""
    try:
        problem: str | None = job.result()
    except Exception as error:
        problem = " ".join(str(error).split())[-500:]
    return problem


def find_engine(name: str) -> Any:
    """The module of an engine; its library is imported only now."""
    library = NEEDED[one_of("engine", name, NEEDED)]
    if library is not None and importlib.util.find_spec(library) is None:
        raise ConfigError(f"engine {name} needs {library}: pip install 'liespline[cluster]'")
    return importlib.import_module(f".{name}_engine", __package__)
