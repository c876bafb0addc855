"""What every task consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from ...nn import Ensemble
from ..data import Split
from ..data.augment import Augmentation, words_of
from ..data.rows import Array
from ..data.split import ALL, SPLITS, Joined
from ..settings import Config, ConfigError, one_of
from ..settings.old import AUGMENT
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
    augmentations: Mapping[str, Callable[[Config], nn.Module]] | None = None
    """The task's own words for `--augment`, each with a module that augments a batch; else those of all tasks."""
    dimensions: tuple[int, ...] = (2,)
    """Of the images."""
    data_help: str | None = None
    """What `--data` must name; None if the task brings its own."""
    check: Callable[[Path, Config], list[str]] | None = None
    """Every problem that would stop training, file by file."""
    prepared: Callable[[Array, Config], Array] = lambda pixels, config: pixels
    """What training does to an image (H, W) or (H, W, 3) before the network sees it."""
    preparation: Callable[[Config], dict[str, Any]] = lambda config: {}
    """The same for other programs, by name: `resize` with its filter, and `crop`."""
    remarks: Callable[[Path], list[str]] | None = None
    """Remarks on the data that do not stop training."""
    whole: Callable[[Config], Split] | None = None
    """Every image of the data, for those that need not come with splits; else all splits are joined."""
    splits: Callable[[Config], tuple[str, ...]] = lambda config: SPLITS
    """The splits that the data come with."""
    multiple: Callable[[Config], int] = lambda config: 1
    """For networks that answer with maps: sides of images must be multiples of this."""
    sets: Mapping[str, Callable[[Config], dict[str, Config]]] = field(default_factory=dict)
    """Name, as in `liespline sweep --set NAME`, to the runs of that set made from the defaults."""
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

    def augmentation(self, config: Config, dimensions: int | None = None, where: str = "") -> nn.Module:
        """The augmentation that the configuration names, for images of so many dimensions if that is known."""
        name, what = config.training.augment, f"{where}augment (task {self.name})"
        if self.augmentations is None:
            return Augmentation(words_of(name, (dimensions,) if dimensions else self.dimensions, what))
        if (now := AUGMENT.get(name)) in self.augmentations:
            raise ConfigError(f"{what} {name!r} is called {now!r} now")
        return self.augmentations[one_of(what, name, self.augmentations)](config)
