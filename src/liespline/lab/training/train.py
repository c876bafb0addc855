"""Training, from the settings of a run to its report."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch import seed_everything
from torch import distributed, nn

from ..data import Split
from ..evaluation.evaluate import evaluate_run
from ..report.page import report_run
from ..runs.checkpoint import SafeCheckpoints
from ..runs.folder import Run
from ..runs.trained import Trained, save_trained
from ..screen import Screen
from ..session import Session
from .learner import Batches, Learner, windows_stay
from .trainer import lightning_manners, make_trainer

if TYPE_CHECKING:
    from ..data.mask_split import Whole
    from ..segmentation import Scored

# Lightning starts the other processes of this machine with our command line; here they find the folder.
SHARED_FOLDER = "LIESPLINE_RUN"


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
