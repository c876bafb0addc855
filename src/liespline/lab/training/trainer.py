"""Lightning's trainer as a run needs it: what is logged, kept and watched."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Any, cast

import psutil
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import Logger, MLFlowLogger, TensorBoardLogger, WandbLogger

from ..data import DataError
from ..runs.checkpoint import KeepBest, KeepLast, SafeCheckpoints, validated
from ..runs.folder import Run
from ..screen import quiet
from ..settings import Config
from ..tasks import find_task
from .learner import Learner
from .shared_norm import ShareStatistics

# Advice that does not apply here: our data sets return whole batches, so more workers rarely help.
BESIDE_THE_POINT = (
    ".*does not have many workers.*",
    ".*smaller than the logging interval.*",
    ".*exists and is not empty.*",
    ".*available but not used.*",
    ".*TensorFloat32 tensor cores.*",
    ".*isinstance.treespec, LeafSpec.*",
)

LOOK_EVERY = 100
"""Steps between two looks for values that are not finite: to look at a number, a GPU has to be waited for."""


def make_trainer(
    config: Config, run: Run, monitor: str, progress: bool, every: int = 1, steady: bool = True
) -> Trainer:
    """Lightning's trainer with the run's folder as its only place on disk; it validates `every` so many epochs.

    Where windows are not `steady`, cuDNN does not try its algorithms anew for each of their sizes.
    """
    settings = config.training
    folder = run.last_checkpoint.parent
    callbacks: list[Callback] = [StopAtNaN(), EpochLog(run), Validated(every)]
    # The best epoch is kept before the last state: killed between the two, the epoch is simply done again.
    callbacks += [KeepBest(folder, monitor, settings.patience), KeepLast(folder)]
    on_gpu = settings.accelerator != "cpu" and torch.cuda.is_available()
    deterministic = not on_gpu if settings.deterministic is None else settings.deterministic
    several = settings.devices * settings.nodes > 1
    images = find_task(config).epoch_images
    # Part of torch's deterministic mode that only guards against reading memory before it is written.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    return Trainer(
        accelerator=settings.accelerator,
        devices=settings.devices,
        num_nodes=settings.nodes,
        strategy="ddp" if several else "auto",
        precision=settings.precision,
        max_epochs=settings.epochs,
        limit_train_batches=None if images is None else max(1, images // settings.batch_size),
        logger=make_logger(settings.logger, run),
        callbacks=callbacks,
        plugins=[SafeCheckpoints(), ShareStatistics()] if several else [SafeCheckpoints()],
        use_distributed_sampler=False,
        deterministic=deterministic,
        benchmark=on_gpu and not deterministic and steady,
        num_sanity_val_steps=0,
        enable_model_summary=False,
        enable_progress_bar=progress,
    )


def make_logger(name: str, run: Run) -> Logger:
    """Where the curves go; Lightning imports Weights & Biases and MLflow only when they are asked for."""
    if name == "wandb":
        return WandbLogger(name=run.path.name, save_dir=run.path, project="liespline")
    if name == "mlflow":
        return MLFlowLogger("liespline", run_name=run.path.name, save_dir=str(run.path / "mlruns"))
    # Without a name and a version, it has a folder to itself, and the progress bar no `v_num`.
    return TensorBoardLogger(run.path / "tensorboard", name="", version="")


class StopAtNaN(Callback):
    """Look at the losses of an epoch and at what its steps left of the network, now and then and in the end."""

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Name the first step whose loss is not finite; or what else is not, which no loss has shown yet."""
        if (batch_idx + 1) % LOOK_EVERY and not trainer.is_last_batch:
            return
        learner = cast(Learner, pl_module)
        losses, step = learner.losses(), trainer.global_step
        values = {name: value for name, value in learner.network.state_dict().items() if value.is_floating_point()}
        # A batch norm hides a variance that overflows, its running mean of variances does not.
        bad = [name for name, value in values.items() if not value.isfinite().all()]
        # All processes stop at the same step, or the others would wait for ever.
        spoiled = trainer.strategy.reduce((~losses.isfinite()).float(), reduce_op="sum").nonzero()
        if len(spoiled):
            what = f"the loss of step {step - len(losses) + 1 + int(spoiled[0])} is"
        elif bad:
            what = f"after step {step} or shortly before, {bad[0]} is"
        else:
            return
        raise DataError(
            f"{what} not finite. The checkpoint of the last whole epoch is kept. Try a lower --lr, or "
            "--precision 32-true"
        )


class Validated(Callback):
    """Validation every so many epochs, and after the last one."""

    def __init__(self, every: int) -> None:
        self.every = every

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Tell Lightning, which looks at the end of the epoch."""
        last = trainer.current_epoch + 1 == trainer.max_epochs
        trainer.check_val_every_n_epoch = 1 if last else self.every


class EpochLog(Callback):
    """One JSON line per epoch: losses, scores, seconds, images per second, peak memory."""

    def __init__(self, run: Run) -> None:
        self.run, self._begun, self._seconds, self._images = run, 0.0, 0.0, 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget epochs that are about to be done again."""
        if trainer.is_global_zero:
            self.run.keep_metrics_before(trainer.current_epoch)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock."""
        self._begun = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Stop the clock with the last batch, before validation."""
        if trainer.is_last_batch:  # logging every step takes as long as a small network's step
            self._seconds, self._images = time.perf_counter() - self._begun, len(batch[0]) * (batch_idx + 1)
            loss = cast(Learner, pl_module).losses().mean()
            pl_module.log("train_loss", loss, on_step=False, on_epoch=True, sync_dist=True, prog_bar=True, batch_size=1)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the line before the epoch's checkpoint: a kill between the two repeats both."""
        if not trainer.is_global_zero:
            return
        fresh = {
            name: value
            for name, value in sorted(trainer.callback_metrics.items())
            if validated(trainer) or not name.startswith("valid_")
        }
        values = {name: float(value) for name, value in fresh.items()}
        speed = self._images * trainer.world_size / self._seconds
        row: dict[str, Any] = {"epoch": trainer.current_epoch, "step": trainer.global_step, **values}
        row |= {"lr": trainer.optimizers[0].param_groups[0]["lr"], "seconds": round(self._seconds, 3)}
        row |= {"images_per_second": round(speed, 1), "memory_mib": memory_in_use(trainer.strategy.root_device)}
        self.run.append_metrics(row)


def memory_in_use(device: torch.device) -> float:
    """Memory in MiB: the most so far of a GPU, else what the process has now."""
    if device.type == "cuda":
        return round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
    return round(psutil.Process().memory_info().rss / 2**20, 1)


def lightning_manners() -> AbstractContextManager[None]:
    """Keep Lightning's banners, tips and warnings that do not apply off the screen."""
    return quiet(("lightning.pytorch", "lightning.fabric", "pytorch_lightning"), BESIDE_THE_POINT)
