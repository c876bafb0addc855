"""Runs as Slurm jobs, one each, through submitit; SBATCH_PARTITION, SBATCH_TIMELIMIT and the like apply."""

from __future__ import annotations

import shutil

import submitit

from ..settings import ConfigError
from .plan import Planned
from .processes_engine import train_run

CLUSTER = "slurm"


def submit(entry: Planned) -> submitit.Job[str | None]:
    """Submit a run as a job, with the cores and GPUs that it needs."""
    if CLUSTER == "slurm" and shutil.which("sbatch") is None:
        raise ConfigError("engine slurm: there is no sbatch on PATH; start the sweep on a machine of the cluster")
    training = entry.config.training
    executor = submitit.AutoExecutor(folder=entry.run.path / "slurm", cluster=CLUSTER)
    executor.update_parameters(name=entry.name.replace(" ", "-"), cpus_per_task=1 + training.workers)
    if training.accelerator != "cpu":
        executor.update_parameters(gpus_per_node=training.devices)
    return executor.submit(train_run, str(entry.run.path.resolve()))
