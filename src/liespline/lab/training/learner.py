"""A network with its loss, scores, augmentation and batches, as Lightning wants them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch import LightningDataModule, LightningModule, Trainer
from torch import Tensor, nn
from torch.utils.data import DataLoader, DistributedSampler
from torchmetrics import MeanMetric

from ...nn import Ensemble, GConv, Lift, shift
from ...nn.shift import first_grid, part_of_step
from ..data import DataError, Split, as_float, batched
from ..data.augment import Draws
from ..runs.model_file import check_fit
from ..settings import ConfigError, Training
from ..tasks.objectives import Objective
from .averaging import Averaged
from .optimisers import optimiser, rate

if TYPE_CHECKING:  # what images with masks need is imported for them alone
    from ..data.mask_split import Whole
    from ..segmentation import Scored

Batch = tuple[Tensor, Tensor]


class Learner(LightningModule):
    """A network with its loss, its scores and its optimiser.

    `averaged` is the moving average of parameters and norms' statistics, where one is asked for: it is scored and kept.
    `scored_whole` makes of a network what scores a whole image with its mask.
    """

    def __init__(
        self,
        network: nn.Module,
        objective: Objective,
        training: Training,
        seed: int = 0,
        scored_whole: Callable[[nn.Module], Callable[[Whole], Scored]] | None = None,
    ) -> None:
        super().__init__()
        self.network, self.objective, self.settings, self.seed = network, objective, training, seed
        self.averaged = Averaged(network, training.ema) if training.ema else None
        self.valid_scores = objective.scores().clone(prefix="valid_")
        self.valid_loss = MeanMetric()  # exact where processes have unequal shares
        self._losses: list[Tensor] = []
        self._compiled: Callable[[Tensor], Tensor] | None = None
        self._scored_whole = scored_whole
        self._whole: Callable[[Whole], Scored] | None = None

    def compile_network(self) -> None:
        """Compile the network as one graph; an nn.Sequential compiled in place would become one graph per child."""
        network = self.network
        # On a GPU the graph is recorded and replayed: at the paper's batch sizes launching takes longer than computing.
        mode = "reduce-overhead" if torch.cuda.is_available() else "default"
        self._compiled = torch.compile(lambda x: outputs(network, x), mode=mode)

    def output(self, x: Tensor) -> Tensor:
        """The network's output of a batch."""
        # Validation would compile a second graph, and a third for its last batch, which takes longer than it saves.
        if self.training:
            return self._compiled(x) if self._compiled else outputs(self.network, x)
        output: Tensor = (self.averaged or self.network)(x)
        return output

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of a batch, on grids that are jittered anew if asked for."""
        # Dropout draws from torch's own generator: by the step, so that a resumed run draws what it would have drawn.
        torch.manual_seed(stable_hash(self.seed, self.global_step, 2, self.global_rank))
        if jitters(self.settings):
            seed = stable_hash(self.seed, self.global_step, 1)
            shift(self.network, a_shift(self.network, seed, self.settings.grid_jitter))
        images, targets = batch
        output = self.output(images)
        count = len(output) // len(targets)
        loss = self.objective.loss(output, torch.cat([targets] * count))
        self._losses.append(loss.detach())
        return loss * count  # the sum of the losses of all, so that each is trained as it would be alone

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Take the new parameters into their average."""
        if self.averaged is not None:
            self.averaged.update_parameters(self.network)

    def on_train_epoch_start(self) -> None:
        """Forget the losses of the epoch before."""
        self._losses = []

    def losses(self) -> Tensor:
        """The loss of each step of the epoch so far."""
        return torch.stack(self._losses)

    def on_validation_epoch_start(self) -> None:
        """Put the grids back, and look at the network as it will be used."""
        if jitters(self.settings):
            shift(self.network, None)
        if self._scored_whole is not None:
            # Anew for each validation: how far tiles must overlap is measured, and depends on the parameters.
            self._whole = self._scored_whole(self.averaged or self.network)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Loss and scores of held-out images."""
        if self._whole is not None:
            loss, count, output, target = self._whole(batch)
        else:
            images, target = batch
            output, count = self.output(images), len(images)
            loss, output = self.objective.loss(output, target), output.float()
        self.valid_scores.update(output, target)
        self.valid_loss.update(loss, count)
        self.log("valid_loss", self.valid_loss, on_epoch=True)
        self.log_dict(self.valid_scores, on_epoch=True, prog_bar=True)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse the state of another network in words."""
        for part in ("optimizer_states", "lr_schedulers", "loops"):
            if part not in checkpoint:
                raise DataError(f"the checkpoint has no {part!r}; start the run again in another folder")
        check_fit(checkpoint["state_dict"], self.state_dict(), "the checkpoint")

    def configure_optimizers(self) -> Any:
        """The optimiser of the configuration, with a schedule that moves at every step."""
        self.trainer.fit_loop.setup_data()
        steps = int(self.trainer.num_training_batches)
        chosen = optimiser(self.network, self.settings)
        moves = rate(chosen, self.settings, steps)
        return {"optimizer": chosen, "lr_scheduler": {"scheduler": moves, "interval": "step"}}


def outputs(network: nn.Module, x: Tensor) -> Tensor:
    """What a loss is taken of: a network's output, or those of each network of an ensemble, one after the other."""
    output: Tensor = network.each(x).flatten(0, 1) if isinstance(network, Ensemble) else network(x)
    return output


class Batches(LightningDataModule):
    """The batches of a run; several processes together see the images that one process would see.

    Every random number depends on the seed, the epoch and the step alone. Nothing random is carried from step
    to step, so a run that is killed and resumed draws what it would have drawn anyway.
    """

    trainer: Trainer

    def __init__(self, splits: Mapping[str, Split], augment: nn.Module, training: Training, seed: int) -> None:
        super().__init__()
        self.splits, self.augment, self.settings, self.seed = splits, augment, training, seed
        self.masks = splits["train"].kind == "masks"
        """Trained on in patches that are drawn anew every epoch, validated whole, one by one."""

    def train_dataloader(self) -> Any:
        """Shuffled by seed and epoch; images that do not fill a batch wait for another epoch."""
        split, trainer = self.splits["train"].to_learn_from(self.seed), self.trainer
        kind = EpochNumbers if self.masks else DistributedSampler
        rank, world = trainer.global_rank, trainer.world_size
        shuffled: Iterable[int] = kind(split, world, rank, shuffle=True, seed=self.seed, drop_last=True)
        return self._loader(split, shuffled, drop_last=True)

    def val_dataloader(self) -> Any:
        """All images once, in order, each on one of the processes."""
        split: Any = self.splits["valid"].to_pick_by()
        return self._loader(
            split, range(self.trainer.global_rank, len(split), self.trainer.world_size), drop_last=False
        )

    def _loader(self, split: Any, sampler: Iterable[int], drop_last: bool) -> Any:
        batch = min(self.settings.batch_size, len(split)) // self.trainer.world_size
        if batch < 1:
            raise ConfigError(f"{len(split)} images cannot be shared by {self.trainer.world_size} processes; use fewer")
        batch, workers = 1 if self.masks and not drop_last else batch, self.settings.workers
        return DataLoader(
            split,
            batch,
            sampler=sampler,
            drop_last=drop_last,
            collate_fn=batched,  # type: ignore[arg-type]
            num_workers=workers,
            pin_memory=self.trainer.strategy.root_device.type == "cuda",
            persistent_workers=workers > 0,
        )

    def on_after_batch_transfer(self, batch: Batch | Whole, dataloader_idx: int) -> Batch | Whole:
        """Turn stored bytes into floats and augment them, on the device, a batch at a time."""
        trainer = self.trainer
        if self.masks and not trainer.training:
            return batch
        images, targets = batch[:2]
        dtype = trainer.lightning_module.dtype
        if not trainer.training:
            return as_float(images).to(dtype), targets
        generator = torch.Generator(images.device).manual_seed(stable_hash(self.seed, trainer.global_step))
        draws = Draws(generator, trainer.world_size, trainer.global_rank)
        images, targets = self.augment(images, targets, draws)
        return images.to(dtype), targets


class EpochNumbers(DistributedSampler[Any]):
    """Shuffled numbers that continue from epoch to epoch, for what is drawn anew every time."""

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)  # type: ignore[arg-type]
        return (self.epoch * count + index for index in super().__iter__())


def stable_hash(*numbers: int) -> int:
    """One 63-bit number from several, the same on every machine."""
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def jitters(training: Training) -> bool:
    """Whether grids are offset in training."""
    jitter = training.grid_jitter
    return any(jitter) if isinstance(jitter, tuple) else bool(jitter)


def a_shift(network: nn.Module, seed: int, amplitude: float | tuple[float, ...] = 1.0) -> Tensor:
    """An element h = Exp(αa), each coordinate of a uniform in half a step of the grid to either side; on the CPU.

    With amplitude α = 1, on SO(2) all angles come up alike: h·H is uniform over the circle. One α per axis of the
    algebra jitters these axes alone: (0, 0, 1) of SO(3) rotates about the last axis. Drawn on the CPU by a seed of its
    own, h is the same on every process and machine.
    """
    grid, generator = first_grid(network), torch.Generator().manual_seed(seed)
    axes = len(grid.steps)
    if isinstance(amplitude, tuple) and len(amplitude) != axes:
        raise ConfigError(
            f"grid_jitter = {amplitude}: {grid.group!r} has {axes} axes; give one number, or one per axis"
        )
    drawn = torch.rand(axes, generator=generator, dtype=torch.float64) - 0.5
    return part_of_step(grid, torch.as_tensor(amplitude, dtype=torch.float64) * drawn)


def windows_stay(network: nn.Module, training: Training) -> bool:
    """Whether windows have the same size at every step: squeezed ones change it when the grids move."""
    if not jitters(training):
        return True
    seen = set()
    for seed in range(8):
        with shift(network, a_shift(network, seed, training.grid_jitter)):
            seen.add(tuple(layer.window for layer in network.modules() if isinstance(layer, (Lift, GConv))))
    return len(seen) == 1
