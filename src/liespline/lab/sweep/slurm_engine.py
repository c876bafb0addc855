"""Runs as Slurm jobs, one each, through submitit; SBATCH_PARTITION, SBATCH_TIMELIMIT and the like apply."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import submitit

from ..settings import ConfigError
from .plan import Planned
from .processes_engine import train_run

AT_ONCE = None  # as many as the cluster has room for
POLL = 5.0
CLUSTER = "slurm"


class Job:
    """A run that waits or works as a job."""

    def __init__(self, job: submitit.Job[str | None]) -> None:
        self.job, self.said = job, f"is job {job.job_id}"

    def done(self) -> bool:
        """Whether it has come to an end."""
        return bool(self.job.done())

    def problem(self) -> str | None:
        """What went wrong with the run, if anything."""
        try:
            return self.job.result()
        except (submitit.core.utils.UncompletedJobError, submitit.core.utils.FailedJobError) as error:
            return " ".join(str(error).split())[-500:]


def submit(entry: Planned) -> Job:
    """Submit a run as a job, with the cores and GPUs that it needs."""
    if CLUSTER == "slurm" and shutil.which("sbatch") is None:
        raise ConfigError("engine slurm: there is no sbatch on PATH; start the sweep on a machine of the cluster")
    training = entry.config.training
    executor = submitit.AutoExecutor(folder=entry.run.path / "slurm", cluster=CLUSTER)
    executor.update_parameters(name=entry.name.replace(" ", "-"), cpus_per_task=1 + training.workers)
    if training.accelerator != "cpu":
        executor.update_parameters(gpus_per_node=training.devices)
    return Job(executor.submit(train_run, str(entry.run.path.resolve())))


def cancel(jobs: Sequence[Job]) -> None:
    """Take all back."""
    for job in jobs:
        job.job.cancel()
