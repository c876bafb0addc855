"""Training, from the settings of a run to its report."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial

from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch import seed_everything
from torch import distributed

from ..data import Split
from ..data.split import Joined
from ..evaluation.evaluate import evaluate_run, report_run
from ..networks import build
from ..runs.checkpoint import SafeCheckpoints
from ..runs.data import read_record, splits_of
from ..runs.folder import Run
from ..runs.trained import Trained, save_trained, warm_start
from ..screen import Screen
from ..settings import Config, Training
from ..tasks import find_task
from ..tasks.networks import Signature
from .interval import validation_interval
from .learner import Batches, Learner
from .shifting import compiled_once
from .trainer import lightning_manners, make_trainer

# Lightning starts the other processes of this machine with our command line; here they find the folder.
SHARED_FOLDER = "LIESPLINE_RUN"


def train(config: Config, run: Run, *, progress: bool = True) -> None:
    """Train from the last complete checkpoint of the run, or from the start; then test it and write its report.

    Afterwards `run.model_file` holds the network of the epoch with the best validation score. All processes of a
    run call this; the first alone writes and goes on to test. What is done already is not done again.
    """
    first = is_first()
    with run.locked() if first else nullcontext():
        if not run.finished:
            task = find_task(config)
            record = read_record(run.path)
            splits = splits_of(config, record, "train", "valid")
            splits["train"] = to_learn_from(config.training, splits)
            signature = replace(Signature.of(splits["train"]), value_range=record.value_range if record else None)
            settled = task.settled(config, signature)
            with told_how_to_go_on(run, first), lightning_manners():
                seed_everything(config.seed, verbose=False)
                objective = task.objective(config, signature)
                objective.look_at(splits["train"].targets)
                used = partial(Trained, config=settled, signature=signature) if signature.kind == "masks" else None
                learner = Learner(build(settled, signature), objective, config.training, config.seed, used)
                warm_start(learner.network, config)
                if config.training.compile and compiled_once(learner.network, config.training):
                    learner.compile_network()
                every = validation_interval(splits["train"], splits["valid"])
                trainer = make_trainer(settled, run, signature, f"valid_{objective.monitor}", progress and first, every)
                augment = task.augmentation(config, len(signature.space))
                batches = Batches(splits, augment, config.training, config.seed)
                begun = run.last_checkpoint if run.last_checkpoint.is_file() else None
                trainer.fit(learner, datamodule=batches, ckpt_path=begun, weights_only=True)
            if distributed.is_available() and distributed.is_initialized():
                # The first process goes on alone to test and report; nothing may wait for the others then.
                distributed.destroy_process_group()
            if first:
                keep_best(settled, run, signature, objective.monitor)
                evaluate_run(run, config)
        if first and not run.complete:
            report_run(run, config)


def to_learn_from(training: Training, splits: Mapping[str, Split]) -> Split:
    """The training images that are asked for: a share of them, or the validation images too."""
    train = splits["train"].share(training.train_fraction)
    return Joined({"train": train, "valid": splits["valid"]}) if training.train_on_val else train


def keep_best(config: Config, run: Run, signature: Signature, score: str) -> None:
    """Write the weights of the best epoch into the file that `liespline.load` reads; of the last, if none is picked."""
    kept = run.last_checkpoint if config.training.train_on_val else run.best_checkpoint
    best, prefix = SafeCheckpoints().load_checkpoint(kept), "network."
    if config.training.ema:
        prefix = "averaged.module."
    weights = {k.removeprefix(prefix): v for k, v in best["state_dict"].items() if k.startswith(prefix)}
    picked = None if config.training.train_on_val else score
    save_trained(run, config, signature, weights, {"epoch": best["epoch"], "checkpoint_metric": picked})


def is_first() -> bool:
    """Whether this is the process that writes; torchrun, Slurm and Lightning number them."""
    return getattr(rank_zero_only, "rank", None) in (None, 0)


@contextmanager
def told_how_to_go_on(run: Run, first: bool) -> Iterator[None]:
    """If training is stopped, say how to continue; and let the processes that Lightning starts find the folder."""
    if first:
        os.environ[SHARED_FOLDER] = str(run.path)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if first:
            again = f"liespline train --resume {shlex.quote(str(run.path))}"
            Screen(stderr=True).print(f"Stopped. Go on with: {again}", soft_wrap=True)
        raise
    finally:
        if first:
            del os.environ[SHARED_FOLDER]
