"""Before training: the settings of a run, its folder, and every problem that would stop it."""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

import torch

from ..data import as_float
from ..runs.folder import Run, new_folder
from ..screen import Screen
from ..session import Session
from ..settings import SETTINGS, Config, ConfigError
from ..tasks import find_task
from .learner import windows_stay
from .train import SHARED_FOLDER, is_first, validation_interval


def start_config(task: str | None, file: Path | None, given: Mapping[str, Any]) -> Config:
    """A task's defaults, or a file's settings, changed by what the user gave."""
    if file is not None:
        config = Config.load(file, lambda task, root: find_task(task, root).defaults)
        if task is not None and find_task(task).name != config.task:
            raise ConfigError(f"{file} is of task {config.task!r}, not {task!r}; leave one of them out")
        chosen = find_task(config)
        return chosen.configured(chosen.checked(config), **given)
    if task is None:
        raise ConfigError("name a task, such as `liespline train images --data DIR`; see `liespline train --help`")
    chosen = find_task(task)
    return chosen.configured(chosen.defaults, **given)


def start(config: Config, out: Path | None) -> Session:
    """A new run, with a folder only after everything was checked; the same one for all its processes."""
    if not is_first():
        return Session(config, Run(out or Path(os.environ.get(SHARED_FOLDER, "."))))
    session = Session(config)
    for remark in preflight(session):
        Screen().print(remark)
    run = Run(out or new_folder(Path("runs"), f"{config.label}-{config.network.group}"))
    with run.locked():
        Run.create(run.path, config)
        session.begin(run)
    return session


def reopened(folder: Path, given: Mapping[str, Any]) -> Session:
    """The run in `folder`, changed in what may change later; more epochs or patience make a finished one unfinished."""
    run, config = Run.open(folder)
    for name, value in given.items():
        if not SETTINGS[name].later and value != config[name]:
            raise ConfigError(
                f"{name} = {value}: a run keeps its {name}, here {config[name]}; leave out {SETTINGS[name].option}, "
                f"or begin another run with --init-from {folder}"
            )
    changed = find_task(config).configured(config, **given)
    session = Session(changed, run)
    if not is_first():
        return session
    with run.locked():
        done = len(run.read_metrics())
        if changed.training.epochs < min(done, config.training.epochs):
            raise ConfigError(f"epochs = {changed.training.epochs}: the run has done {done}; give more")
        stopped_early = done < config.training.epochs
        longer = changed.training.epochs > config.training.epochs
        longer = longer or (stopped_early and _patience(changed) > _patience(config))
        elsewhere = (changed.data, changed.labels) != (config.data, config.labels)
        if longer or elsewhere or not run.complete:
            session.check_there()
            preflight(session)
            session.begin(run)
            if session.changes.added:
                Screen().print(f"images that came later are not used: {session.changes.words}")
        if changed != config:
            run.keep_config(changed, unfinished=longer)
    return session


def _patience(config: Config) -> float:
    return config.training.patience or math.inf


def check_same_settings(folder: Path, wanted: Config, may_differ: Container[str]) -> None:
    """Refuse to resume a run that was begun with other settings than these, but for some that may differ."""
    _, config = Run.open(folder)
    if config.task != wanted.task:
        raise ConfigError(f"{folder}: is of task {config.task}, not {wanted.task}; choose another folder with --out")
    if words := differing(config, wanted, may_differ):
        raise ConfigError(f"{folder}: was begun with {words}; choose another folder with --out")


def differing(config: Config, wanted: Config, may_differ: Container[str]) -> str:
    """The settings in which a configuration is not as wanted, in words, but for some that may differ."""
    others = [name for name in SETTINGS if name not in may_differ and config[name] != wanted[name]]
    return ", ".join(f"{name} = {config[name]}, not {wanted[name]}" for name in others)


def preflight(session: Session) -> list[str]:
    """Find every problem with the machine, the data and the network before time is spent; remarks on them."""
    config, task = session.config, session.task
    check_machine(config)
    task.augmentation(config)
    if config.training.train_on_val and task.data_path(config) and session.tested != "test":
        raise ConfigError("train_on_val: these data have no test images; the validation images are needed for scoring")
    remarks, split = session.validate(), session.train
    task.augmentation(config, len(split.space))
    network = session.network.eval()
    try:
        with torch.no_grad():
            network(as_float(split.__getitems__([0])[0]))
    except ValueError as error:
        size = "×".join(map(str, split.space))
        raise ConfigError(f"images of {size} do not fit this network ({error}); use fewer widths") from error
    network.train()
    remarks += session.remarks
    if (every := validation_interval(split, session.valid)) > 1:
        remarks.append(
            f"the validation images have {session.valid.samples:,} samples, the patches of an epoch "
            f"{split.samples_drawn:,}: validated every {every} epochs, and after the last"
        )
    if config.network.tta_grids > 1:
        remarks.append(
            f"--tta-grids {config.network.tta_grids}: epochs are scored on one grid, the one that is trained; "
            "`evaluate` and `predict` take the mean over all of them"
        )
    if config.training.compile and not windows_stay(network, config.training):
        remarks.append("--compile is left out: windows change their size as the grids move, and each would be compiled")
    return remarks


def check_machine(config: Config) -> None:
    """Refuse devices and loggers that are not there."""
    training = config.training
    gpus = torch.cuda.device_count() or int(torch.backends.mps.is_available())
    if training.accelerator == "gpu" and gpus < training.devices:
        raise ConfigError(
            f"accelerator = gpu with devices = {training.devices}: this machine has {gpus or 'no'} GPU that torch can "
            "use; leave --accelerator out, or lower devices"
        )
    if training.logger != "tensorboard" and importlib.util.find_spec(training.logger) is None:
        raise ConfigError(f"logger = {training.logger}: is not installed; `pip install {training.logger}` first")
