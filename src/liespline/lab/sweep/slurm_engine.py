"""Jobs of Slurm, one each, through submitit; SBATCH_PARTITION, SBATCH_TIMELIMIT and the like apply."""

import os
import shutil

import submitit

from ..settings import ConfigError
from .jobs import Job
from .processes_engine import carry_out

CLUSTER = "slurm"


def submit(job: Job) -> submitit.Job[str | None]:
    """Submit a job, with the cores and GPUs that it needs."""
    if CLUSTER == "slurm" and shutil.which("sbatch") is None:
        raise ConfigError("engine slurm: there is no sbatch on PATH; start on a machine of the cluster")
    executor = submitit.AutoExecutor(folder=job.logs, cluster=CLUSTER)
    executor.update_parameters(name=job.name.replace(" ", "-"), cpus_per_task=job.cpus)
    if job.gpus:
        executor.update_parameters(gpus_per_node=job.gpus)
    return executor.submit(carry_out, job.words, os.getcwd())
