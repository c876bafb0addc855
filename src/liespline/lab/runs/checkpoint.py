"""Checkpoints of training: whole or absent, checked when read, never unpickled; and which are kept."""

import math
import zipfile
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins import TorchCheckpointIO
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor

from ..data.files import DataError, existing, replacing
from .model_file import first_line
from .old import best_so_far


class SafeCheckpoints(TorchCheckpointIO):
    """Lightning's checkpoints, replaced in one step and read without running any code in them."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None) -> None:
        """Write the whole state, or leave the earlier file as it was."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as stream:
            torch.save(checkpoint, stream)

    def load_checkpoint(
        self, path: str | Path, map_location: Any | None = "cpu", weights_only: bool | None = True
    ) -> dict[str, Any]:
        """Read a state whose every byte passes its checksum; what would need unpickling is refused."""
        path = existing(Path(path), "a checkpoint of a run")
        try:
            # torch.load does not compare the archive's checksums, so a flipped bit would pass unseen.
            with zipfile.ZipFile(path) as archive:
                if damaged := archive.testzip():
                    raise ValueError(f"{damaged} is damaged; go back to an earlier copy")
            state = torch.load(path, map_location="cpu", weights_only=True)
            if missing := [name for name in ("epoch", "global_step", "state_dict") if name not in state]:
                raise ValueError(f"it has no {missing[0]!r}")
        except Exception as error:
            raise DataError(f"{path}: is not a whole checkpoint ({first_line(error)})") from error
        return dict(state)


def validated(trainer: Trainer) -> bool:
    """Whether this epoch is one of those that end with a validation."""
    return (trainer.current_epoch + 1) % (trainer.check_val_every_n_epoch or 1) == 0


class KeepBest(ModelCheckpoint):
    """Lightning's best-by-validation checkpoint, in one file that outlives a move of the run's folder.

    Of epochs with the same score, that of the lowest validation loss: few images give many epochs the same score, and
    the first of them is the least settled. With `patience`, so many epochs in a row that are not kept end the run,
    after one that was validated.
    """

    loss = math.inf
    """Of the epoch that is kept."""
    waited = 0
    """Epochs since then."""

    def __init__(self, folder: Path, monitor: str, patience: int | None = None) -> None:
        self.patience = patience
        super().__init__(
            folder, "best", monitor=monitor, mode="max", enable_version_counter=False, save_weights_only=True,
            save_on_train_epoch_end=True,
        )  # fmt: skip

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Look at an epoch that was validated; for another, the scores there are would be those of an earlier one."""
        if validated(trainer):
            super().on_train_epoch_end(trainer, pl_module)
        else:
            self.waited += 1

    def check_monitor_top_k(self, trainer: Trainer, current: Tensor | None = None) -> bool:
        """Say whether this epoch is the best so far."""
        loss = float(trainer.callback_metrics.get("valid_loss", math.nan))
        level = current is not None and current == self.best_model_score and loss < self.loss
        better = super().check_monitor_top_k(trainer, current)
        kept = better or trainer.strategy.reduce_boolean_decision(bool(level))
        self.loss, self.waited = (loss, 0) if kept else (self.loss, self.waited + 1)
        if self.patience is not None and self.waited >= self.patience:
            trainer.should_stop = True
        return kept

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run has to know of the epochs before."""
        return {**super().state_dict(), "loss": self.loss, "waited": self.waited}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the best score so far, with its path where the folder is now."""
        self.loss, self.waited = best_so_far(state_dict)
        path = str(Path(str(self.dirpath)) / "best.ckpt")
        state = {**state_dict, "dirpath": self.dirpath}
        if state.get("best_model_path"):
            state |= {"best_model_path": path, "kth_best_model_path": path}
            state["best_k_models"] = {path: state["best_model_score"]}
        super().load_state_dict(state)


class KeepLast(ModelCheckpoint):
    """The complete state after every epoch, in one file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "last", enable_version_counter=False, save_on_train_epoch_end=True)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Nothing to restore: the file is always the same one."""
