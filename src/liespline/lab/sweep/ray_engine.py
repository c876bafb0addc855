"""Runs on a Ray cluster: `ray start` makes one of any machines, and RAY_ADDRESS says where it is."""

from __future__ import annotations

import logging
from typing import Any

import ray

from .plan import Planned
from .processes_engine import train_run


class Task:
    """A run that was given to the cluster."""

    def __init__(self, reference: Any) -> None:
        self.reference = reference

    def done(self) -> bool:
        """Whether it has come to an end."""
        return bool(ray.wait([self.reference], num_returns=1, timeout=0)[0])

    def result(self) -> str | None:
        """What went wrong with the run, if anything; an error if its machine went away, and the second one too."""
        problem: str | None = ray.get(self.reference)
        return problem

    def cancel(self) -> None:
        """Take it back."""
        ray.cancel(self.reference)


def submit(entry: Planned) -> Task:
    """Give a run to the cluster, with the cores and GPUs that it needs."""
    if not ray.is_initialized():
        ray.init(log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    training = entry.config.training
    on_gpus = training.accelerator != "cpu" and ray.cluster_resources().get("GPU", 0) > 0
    needs = {"num_cpus": 1 + training.workers, "num_gpus": training.devices if on_gpus else 0}
    return Task(ray.remote(train_run).options(**needs, max_retries=1).remote(str(entry.run.path.resolve())))
