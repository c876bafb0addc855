"""Training, from the settings of a run to its report."""

from __future__ import annotations

import importlib.util
import math
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch import seed_everything
from torch import distributed, nn

from ..data import Split, as_float
from ..evaluation.evaluate import evaluate_run
from ..report.page import report_run
from ..runs.checkpoint import SafeCheckpoints
from ..runs.folder import Run, new_folder
from ..runs.trained import Trained, save_trained
from ..screen import Screen
from ..session import Session
from ..settings import SETTINGS, Config, ConfigError
from ..tasks import find_task
from .learner import Batches, Learner, windows_stay
from .trainer import lightning_manners, make_trainer

if TYPE_CHECKING:
    from ..data.mask_split import Whole
    from ..segmentation import Scored

# Lightning starts the other processes of this machine with our command line; here they find the folder.
SHARED_FOLDER = "LIESPLINE_RUN"


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
    except (ValueError, RuntimeError) as error:
        size = "×".join(map(str, split.space))
        advice = "give it other images" if ":" in config.network.network else "use fewer widths"
        raise ConfigError(f"images of {size} do not fit this network ({error}); {advice}") from error
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


def train(session: Session, *, progress: bool = True) -> None:
    """Train from the last complete checkpoint of the run, or from the start; then test it and write its report.

    Afterwards `run.model_file` holds the network of the epoch with the best validation score. All processes of a
    run call this; the first alone writes and goes on to test. What is done already is not done again.
    """
    first, run = is_first(), session.run
    with run.locked() if first else nullcontext():
        if not run.finished:
            with told_how_to_resume(run, first), lightning_manners():
                fit(session, progress=progress and first)
            if distributed.is_available() and distributed.is_initialized():
                # The first process goes on alone to test and report; nothing may wait for the others then.
                distributed.destroy_process_group()
            if first:
                keep_best(session)
                evaluate_run(session)
        if first and not run.complete:
            report_run(session)


def fit(session: Session, *, progress: bool) -> None:
    """Train the network of a session, from the last checkpoint of its run if there is one."""
    config, signature, objective = session.config, session.signature, session.objective
    network = session.network
    seed_everything(config.seed, verbose=False)
    learner = Learner(network, objective, config.training, config.seed, scored_whole(session))
    steady = windows_stay(network, config.training)
    if config.training.compile and steady:
        learner.compile_network()
    every = validation_interval(session.train, session.valid)
    trainer = make_trainer(session.settled, session.run, f"valid_{objective.monitor}", progress, every, steady)
    augment = session.task.augmentation(config, len(signature.space))
    batches = Batches({"train": session.train, "valid": session.valid}, augment, config.training, config.seed)
    begun = session.run.last_checkpoint
    trainer.fit(learner, datamodule=batches, ckpt_path=begun if begun.is_file() else None, weights_only=True)


def validation_interval(train: Split, valid: Split) -> int:
    """After how many epochs to validate: ⌈samples of the validation images / samples of an epoch's patches⌉.

    Images with masks are trained on in patches and validated whole, which can be a hundred times as much. A step of
    training costs about three passes over its samples, so validation takes a quarter of the time at most. It is
    counted and not timed: a resumed run validates when the uninterrupted one would have.
    """
    return max(1, math.ceil(valid.samples / train.samples_drawn)) if train.kind == "masks" else 1


def scored_whole(session: Session) -> Callable[[nn.Module], Callable[[Whole], Scored]] | None:
    """For images with masks: what scores whole ones by a network as it will be used."""
    if session.signature.kind != "masks":
        return None
    from ..segmentation import scored

    return lambda network: partial(scored, Trained(network, session.settled, session.signature), session.objective)


def keep_best(session: Session) -> None:
    """Write the network of the best epoch into the file that `liespline.load` reads; the last, if none is picked."""
    run, training, prefix = session.run, session.config.training, "network."
    kept = run.last_checkpoint if training.train_on_val else run.best_checkpoint
    best = SafeCheckpoints().load_checkpoint(kept)
    if training.ema:
        prefix = "averaged.module."
    parameters = {k.removeprefix(prefix): v for k, v in best["state_dict"].items() if k.startswith(prefix)}
    metric = None if training.train_on_val else session.objective.monitor
    session.finish(parameters, metric)
    save_trained(run, session.settled, session.signature, parameters, best["epoch"], metric)


def is_first() -> bool:
    """Whether this is the process that writes; torchrun, Slurm and Lightning number them."""
    return getattr(rank_zero_only, "rank", None) in (None, 0)


@contextmanager
def told_how_to_resume(run: Run, first: bool) -> Iterator[None]:
    """If training is stopped, say how to continue; and let the processes that Lightning starts find the folder."""
    if first:
        os.environ[SHARED_FOLDER] = str(run.path)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if first:
            again = f"liespline train --resume {shlex.quote(str(run.path))}"
            Screen(stderr=True).print(f"Stopped. Resume with: {again}", soft_wrap=True)
        raise
    finally:
        if first:
            del os.environ[SHARED_FOLDER]
