"""`liespline train`: check the data, make or reopen the run's folder, train, test, report."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import torch
from lightning.fabric.utilities.rank_zero import rank_zero_only

from ..data import DataError, as_float
from ..evaluation.evaluate import evaluate_run, report_run
from ..runs.folder import Run, new_folder
from ..screen import Screen
from ..settings import Config, ConfigError
from ..tasks import find_task
from ..tasks.networks import Signature
from .trainer import train

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
        raise ConfigError("name a task, such as `liespline train images --data DIR`; see `liespline tasks`")
    return find_task(task).defaults


def begin(config: Config, out: Path | None, *, progress: bool = True) -> Run | None:
    """A new run, from the check of its data to its report; None on all processes but the first."""
    notes = preflight(config)
    if not is_first():
        train(config, Run(Path(os.environ.get(SHARED_FOLDER, "."))), progress=False)
        return None
    for note in notes:
        Screen().print(note)
    run = Run(out or new_folder(Path("runs"), f"{config.task}-{config.network.group}"))
    with run.locked():
        Run.create(run.path, config)
        return _complete(run, config, progress)


def go_on(folder: Path, *, progress: bool = True) -> Run | None:
    """The run in `folder`, from its last complete checkpoint to its report; nothing, if it is finished."""
    run, config = Run.open(folder)
    if not is_first():
        if not run.finished:
            train(config, run, progress=False)
        return None
    with run.locked():
        if run.complete:
            return run
        preflight(config)
        return _complete(run, config, progress)


def is_first() -> bool:
    """Whether this is the process that writes; torchrun, Slurm and Lightning number them."""
    return getattr(rank_zero_only, "rank", None) in (None, 0)


def _complete(run: Run, config: Config, progress: bool) -> Run:
    if not run.finished:
        os.environ[SHARED_FOLDER] = str(run.path)
        try:
            train(config, run, progress=progress)
        except (KeyboardInterrupt, SystemExit):
            again = f"liespline train --resume {shlex.quote(str(run.path))}"
            Screen(stderr=True).print(f"Stopped. Go on with: {again}", soft_wrap=True)
            raise
        finally:
            del os.environ[SHARED_FOLDER]
        evaluate_run(run, config)
    report_run(run, config)
    return run


def preflight(config: Config) -> tuple[str, ...]:
    """Find every problem with the data and the network before any time is spent on training; remarks on the data."""
    task = find_task(config.task)
    path = task.data_path(config)
    if task.check is not None and path is not None and (problems := task.check(path, config)):
        raise DataError(problems)
    task.augmentation(config)
    split = task.load(config, "train")
    network = task.network(config, Signature.of(split)).eval()
    images = as_float(split.__getitems__([0])[0])
    try:
        with torch.no_grad():
            network(images)
    except ValueError as error:
        size = "×".join(map(str, split.space))
        raise ConfigError(f"images of {size} do not fit this network ({error}); use fewer --widths") from error
    return tuple(split.notes)
