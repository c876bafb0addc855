"""What every task consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from ..data import Split
from ..data.augment import Augmentation, words_of
from ..data.split import ALL, SPLITS, Joined
from ..networks import build
from ..settings import SETTINGS, Config, ConfigError, one_of
from .defaults import takers
from .fitting import fitting_widths, remarks, resnet_widths
from .labelled import by_kind
from .networks import Signature
from .objectives import Objective


@dataclass(frozen=True)
class Task:
    """Data, defaults, augmentation, networks and objective of one task."""

    defaults: Config
    load_split: Callable[[Config, str], Split]
    own: bool = False
    """Whether data are a user's own, of any size, which need not come with splits: `load_split` knows "all" too."""
    augmentations: Mapping[str, Callable[[Config], nn.Module]] | None = None
    """The task's own words for `--augment`, each with a module that augments a batch; else those of all tasks."""
    dimensions: tuple[int, ...] = (2,)
    """Of the images."""
    options: tuple[str, ...] = ()
    """The special settings that it takes."""
    networks: tuple[str, ...] = ("classifier", "resnet")
    """The architectures that it can have."""
    data_help: str | None = None
    """What `--data` must name; None if the task brings its own."""
    check: Callable[[Path, Config], list[str]] | None = None
    """Problems that loading all splits would not meet, file by file."""
    splits: Callable[[Config], tuple[str, ...]] = lambda config: SPLITS
    """The splits that the data come with."""
    epoch_images: int | None = None
    """How many images one epoch has at most, drawn anew each time; None takes all of them."""
    objective: Callable[[Config, Signature], Objective] = by_kind

    @property
    def name(self) -> str:
        """The word on the command line."""
        return self.defaults.task

    def configured(self, config: Config, **given: Any) -> Config:
        """A configuration with what a user asked for; a setting that does nothing for this task is refused."""
        for name in given:
            self._refuse(name, SETTINGS[name].special)
        return config.given(**given)

    def checked(self, config: Config) -> Config:
        """A configuration from a file, in which a setting that does nothing for this task is refused as well."""
        for name, one in SETTINGS.items():
            self._refuse(name, one.special and config[name] not in (one.default, self.defaults[name]))
        return config

    def _refuse(self, name: str, asked: bool) -> None:
        if asked and name not in self.options:
            others = ", ".join(takers(name))
            only = f", only for {others}" if others else ""
            raise ConfigError(f"{SETTINGS[name].option} does nothing for task {self.name}{only}; leave out {name}")

    def settled(self, config: Config, signature: Signature) -> Config:
        """A configuration with all that its network needs to be made again, without the task."""
        network, usual = config.network, self.defaults.network
        one_of(f"network (task {self.name})", network.network, self.networks)
        if network.network == "classifier" and self.own:
            return config.updated(widths=fitting_widths(usual, network, signature.space))
        if network.network == "resnet" and network.widths == usual.widths:
            # The task's are those of a chain: a block has two layers.
            return config.updated(widths=resnet_widths(network, signature.space))
        return config

    def make(self, config: Config, signature: Signature) -> nn.Module:
        """The network of a configuration, or an ensemble that has its parameters together."""
        return build(self.settled(config, signature), signature)

    def load(self, config: Config, split: str) -> Split:
        """A split of the task's data, or "all" of it; if `--data` is missing, the error says what it must be."""
        self.data_path(config)
        if split == ALL and not self.own:
            return Joined({name: self.load_split(config, name) for name in self.splits(config)})
        return self.load_split(config, split)

    def remarks(self, config: Config, train: Split) -> list[str]:
        """What is to be said of the images that are trained on."""
        said = self.own and config.network.network in ("classifier", "resnet")
        return remarks(self.defaults.network, config, train) if said else []

    def data_path(self, config: Config) -> Path | None:
        """Where the data are, or None for a task that brings its own."""
        if self.data_help is None:
            return None
        if config.data is None:
            raise ConfigError(f"task {self.name} needs --data: {self.data_help}")
        return Path(config.data)

    def augmentation(self, config: Config, dimensions: int | None = None) -> nn.Module:
        """The augmentation that the configuration names, for images of so many dimensions if that is known."""
        name, what = config.training.augment, f"augment (task {self.name})"
        if self.augmentations is None:
            return Augmentation(words_of(name, (dimensions,) if dimensions else self.dimensions, what))
        return self.augmentations[one_of(what, name, self.augmentations)](config)
