"""`liespline train`: check the data, make or reopen the run's folder, train, test, report."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from lightning.fabric.utilities.rank_zero import rank_zero_only
from rich.console import Console

from .config import Config, ConfigError
from .data import DataError
from .engine import train
from .finish import evaluate_run, report_run
from .network import Signature
from .run import Run, new_folder
from .tasks import find_task

# Lightning starts the other processes of this machine with our command line; here they find the folder.
SHARED_FOLDER = "LIESPLINE_RUN"


def start_config(task: str | None, file: Path | None) -> Config:
    """The configuration that the command line's options then change: a task's defaults, or a file's."""
    if file is not None:
        config = Config.load(file)
        if task not in (None, config.task):
            raise ConfigError(f"{file} is of task {config.task!r}, not {task!r}; leave one of them out")
        return config
    if task is None:
        raise ConfigError(
            "name a task, such as `liespline train images --data DIR`; `liespline tasks` lists them"
        )
    return find_task(task).defaults


def start(
    config: Config | None, folder: Path | None, *, progress: bool, console: Console
) -> dict[str, Any] | None:
    """Begin a run with `config`, or go on with the one in `folder`; results on the first process only."""
    first = getattr(rank_zero_only, "rank", 0) in (None, 0)
    if config is not None:
        preflight(config)
        path = Path(os.environ.get(SHARED_FOLDER) or folder or default_folder(config))
        run = Run(path)
    else:
        run, config = Run.open(Path(str(folder)))
        preflight(config)
    if first:
        os.environ[SHARED_FOLDER] = str(run.path)
    with run.locked() if first else nullcontext():
        if first and not run.config_file.exists():
            Run.create(run.path, config)
        elif first and folder is not None and run.finished:
            console.print(f"{run.path} is finished; these are its results")
            return run.read_results()
        trainer = train(config, run, progress=progress and first)
        if not trainer.is_global_zero:
            return None
        results = evaluate_run(run, config)
        report_run(run, config)
    console.print(f"report: {run.report_file}")
    return results


def default_folder(config: Config) -> Path:
    """`runs/TASK-GROUP`, numbered where that is taken."""
    return new_folder(Path("runs"), f"{config.task}-{config.network.group}")


def preflight(config: Config) -> None:
    """Find every problem with the data and the network before any time is spent on training."""
    task = find_task(config.task)
    path = task.data_path(config)
    if task.check is not None and path is not None and (problems := task.check(path, config)):
        raise DataError(problems)
    task.augmentation(config)
    split = task.load(config, "train")
    network = task.network(config, Signature.of(split))
    images = split.__getitems__([0])[0]
    del network, images
