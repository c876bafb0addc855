"""What every task consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from ...nn import Ensemble
from ..data import Split
from ..data.rows import Array
from ..data.split import ALL, SPLITS, Joined
from ..settings import Config, ConfigError, one_of
from .networks import Signature, make_classifier
from .objectives import Classification, Objective


def classification(config: Config, signature: Signature) -> Objective:
    """The objective of every task that sorts images into classes."""
    training = config.training
    return Classification(signature.classes, training.class_weights, training.label_smoothing)


@dataclass(frozen=True)
class Task:
    """Data, defaults, augmentation, network and objective of one task."""

    defaults: Config
    load_split: Callable[[Config, str], Split]
    augmentations: Mapping[str, Callable[[Config], nn.Module]]
    """Name, as in `--augment NAME`, to the module that augments a batch on the device."""
    data_help: str | None = None
    """What `--data` must name; None if the task brings its own."""
    check: Callable[[Path, Config], list[str]] | None = None
    """Every problem that would stop training, file by file."""
    prepared: Callable[[Array, Config], Array] = lambda pixels, config: pixels
    """What training does to an image (H, W) or (H, W, 3) before the network sees it."""
    remarks: Callable[[Path], list[str]] | None = None
    """Remarks on the data that do not stop training."""
    whole: Callable[[Config], Split] | None = None
    """Every image of the data, for those that need not come with splits; else all splits are joined."""
    splits: Callable[[Config], tuple[str, ...]] = lambda config: SPLITS
    """The splits that the data come with."""
    multiple: Callable[[Config], int] = lambda config: 1
    """For networks that answer with maps: sides of images must be multiples of this."""
    epoch_images: int | None = None
    """How many images one epoch has at most, drawn anew each time; None takes all of them."""
    network: Callable[[Config, Signature], nn.Module] = make_classifier
    """Makes one network; `make` makes what is asked for."""
    objective: Callable[[Config, Signature], Objective] = classification

    @property
    def name(self) -> str:
        """The word on the command line."""
        return self.defaults.task

    def make(self, config: Config, signature: Signature) -> nn.Module:
        """The network of a configuration, or an ensemble that has its weights together."""
        count, weights = config.network.ensemble, config.network.weights
        if count == 1:
            return self.network(config, signature)
        one = config.updated(weights=max(1, weights // count) if weights else None)
        return Ensemble(self.network(one, signature) for _ in range(count))

    def load(self, config: Config, split: str) -> Split:
        """A split of the task's data, or "all" of it; if `--data` is missing, the error says what it must be."""
        self.data_path(config)
        if split != ALL:
            return self.load_split(config, split)
        if self.whole is not None:
            return self.whole(config)
        return Joined({name: self.load_split(config, name) for name in self.splits(config)})

    def data_path(self, config: Config) -> Path | None:
        """Where the data are, or None for a task that brings its own."""
        if self.data_help is None:
            return None
        if config.data is None:
            raise ConfigError(f"task {self.name} needs --data: {self.data_help}")
        return Path(config.data)

    def augmentation(self, config: Config) -> nn.Module:
        """The augmentation that the configuration names."""
        name = one_of(f"augment (task {self.name})", config.training.augment, self.augmentations)
        return self.augmentations[name](config)
