"""Jobs on a Ray cluster: `ray start` makes one of any machines, and RAY_ADDRESS says where it is."""

import logging
import os
from typing import Any

import ray

from .jobs import Job
from .processes_engine import carry_out


class Task:
    """A job that was given to the cluster."""

    def __init__(self, reference: Any) -> None:
        self.reference = reference

    def done(self) -> bool:
        return bool(ray.wait([self.reference], num_returns=1, timeout=0)[0])

    def result(self) -> str | None:
        """What went wrong with it, if anything; an error if its machine went away, and the second one too."""
        return ray.get(self.reference)

    def cancel(self) -> None:
        ray.cancel(self.reference)


def submit(job: Job) -> Task:
    """Give a job to the cluster, with the cores and GPUs that it needs."""
    if not ray.is_initialized():
        ray.init(log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    gpus = job.gpus if ray.cluster_resources().get("GPU", 0) > 0 else 0
    needs = {"num_cpus": job.cpus, "num_gpus": gpus, "max_retries": 1}
    return Task(ray.remote(carry_out).options(**needs).remote(job.words, os.getcwd()))
