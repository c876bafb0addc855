"""Runs as Slurm jobs, one each, through submitit; SBATCH_PARTITION, SBATCH_TIMELIMIT and the like apply."""

from __future__ import annotations

import shutil
import time

import submitit

from ..settings import ConfigError
from .one_run import train_run
from .plan import Planned, Report

POLL = 5.0  # seconds between two looks at the queue


def do_all(waiting: list[Planned], jobs: int | None, report: Report, cluster: str = "slurm") -> list[str]:
    """Submit all, at most `jobs` at a time, and wait for them; the names of those that failed."""
    if cluster == "slurm" and shutil.which("sbatch") is None:
        raise ConfigError("engine slurm: there is no sbatch on PATH; start the sweep on a machine of the cluster")
    queue, failed = list(waiting), list[str]()
    running: dict[str, tuple[Planned, submitit.Job[str | None]]] = {}
    try:
        while queue or running:
            while queue and (jobs is None or len(running) < jobs):
                entry = queue.pop(0)
                job = _executor(entry, cluster).submit(train_run, str(entry.run.path.resolve()))
                running[job.job_id] = (entry, job)
                report(entry.name, f"is job {job.job_id}")
            for name, (entry, job) in list(running.items()):
                if job.done():
                    del running[name]
                    if problem := _problem(job):
                        failed.append(entry.name)
                    report(entry.name, f"failed: {problem}" if problem else "done")
            if running:
                time.sleep(POLL)
    except BaseException:
        for _, job in running.values():
            job.cancel()
        raise
    return failed


def _executor(entry: Planned, cluster: str) -> submitit.AutoExecutor:
    training = entry.config.training
    executor = submitit.AutoExecutor(folder=entry.run.path / "slurm", cluster=cluster)
    executor.update_parameters(name=entry.name.replace(" ", "-"), cpus_per_task=1 + training.workers)
    if training.accelerator != "cpu":
        executor.update_parameters(gpus_per_node=training.devices)
    return executor


def _problem(job: submitit.Job[str | None]) -> str | None:
    try:
        return job.result()
    except (submitit.core.utils.UncompletedJobError, submitit.core.utils.FailedJobError) as error:
        return " ".join(str(error).split())[-500:]
