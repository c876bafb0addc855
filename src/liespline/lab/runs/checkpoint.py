"""Files that hold parameters: whole or absent, checked when read, never unpickled."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins import TorchCheckpointIO
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ...models.kernels import SPLINES
from ..data.files import DataError, existing, replacing
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
            raise DataError(f"{path}: is not a whole checkpoint ({_first_line(error)})") from error
        return dict(state)


def check_fit(found: Mapping[str, Tensor], expected: Mapping[str, Tensor], where: str) -> None:
    """Refuse parameters that are not those of a network, naming the first that differs.

    Which splines on H they are of is compared by the network; files of 0.2 do not say it.
    """
    for name in (name for name in (*expected, *found) if not name.endswith(f".{SPLINES}")):
        shapes = [tuple(values[name].shape) if name in values else None for values in (found, expected)]
        if shapes[0] != shapes[1]:
            has, wanted = ("no such tensor" if shape is None else f"shape {shape}" for shape in shapes)
            raise DataError(f"{where}: {name}: it has {has}, the network has {wanted}")


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


def save_weights(path: Path, weights: Mapping[str, Tensor], description: Mapping[str, Any]) -> None:
    """Write tensors and what they are into one safetensors file, with a digest of both; equal ones, equal bytes."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    text = json.dumps(description)
    with replacing(path) as stream:
        # One entry: safetensors writes several in any order, and the bytes would differ from run to run.
        stream.write(save(tensors, {"liespline": f"{_digest(tensors, text)} {text}"}))


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and description from a file of `save_weights`; a damaged or foreign file is refused."""
    path = existing(path, "a trained network (model.safetensors)")
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            if "liespline" not in metadata:
                raise DataError(f"{path}: holds tensors, but not of a network trained by `liespline train`")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        digest, _, text = metadata["liespline"].partition(" ")
        if _digest(tensors, text) != digest:
            raise DataError(f"{path}: its contents do not match their digest; the file is damaged")
        description = json.loads(text)
    except (SafetensorError, OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: is not a whole file of a trained network ({_first_line(error)})") from error
    return tensors, description


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
