"""Runs on a Ray cluster: `ray start` makes one of any machines, and RAY_ADDRESS says where it is."""

from __future__ import annotations

import logging
from typing import Any

import ray

from .one_run import train_run
from .plan import Planned, Report


def do_all(waiting: list[Planned], jobs: int | None, report: Report) -> list[str]:
    """Train all, as many at a time as the cluster has room for (at most `jobs`); the names of those that failed."""
    if not ray.is_initialized():
        ray.init(log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    with_gpus = ray.cluster_resources().get("GPU", 0) > 0
    queue, failed = list(waiting), list[str]()
    running: dict[Any, Planned] = {}
    try:
        while queue or running:
            while queue and (jobs is None or len(running) < jobs):
                entry = queue.pop(0)
                running[_submitted(entry, with_gpus)] = entry
                report(entry.name, "is given to the cluster")
            ended, _ = ray.wait(list(running), num_returns=1)
            entry = running.pop(ended[0])
            if problem := _problem(ended[0]):
                failed.append(entry.name)
            report(entry.name, f"failed: {problem}" if problem else "done")
    except BaseException:
        for future in running:
            ray.cancel(future)
        raise
    return failed


def _submitted(entry: Planned, with_gpus: bool) -> Any:
    training = entry.config.training
    needs = {"num_cpus": 1 + training.workers, "num_gpus": 0}
    if with_gpus and training.accelerator != "cpu":
        needs["num_gpus"] = training.devices
    return ray.remote(train_run).options(**needs, max_retries=1).remote(str(entry.run.path.resolve()))


def _problem(future: Any) -> str | None:
    try:
        problem: str | None = ray.get(future)
    except ray.exceptions.RayError as error:  # its machine went away, and the second one too
        return " ".join(str(error).split())[-500:]
    return problem
