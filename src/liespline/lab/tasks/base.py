"""What every task consists of, and what users' own data have in common: nobody knew their sizes beforehand."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from ..._check import sizes
from ...models.resnet import WIDTHS
from ...models.widths import known
from ...nn.resample import kept
from ..data import Split, as_float
from ..data.augment import Augmentation, words_of
from ..data.split import ALL, SPLITS, Joined
from ..data.table import read_table
from ..networks import Signature, build, fitting_widths
from ..settings import SETTINGS, Config, ConfigError, Network, one_of
from ..transforms import radii
from .defaults import takers
from .objectives import Objective, by_kind

ROTATED = ("so2", "o2", "sim2", "so3", "o3")
"""Groups that hold every rotation."""
LOOKED_AT = 64
# After fewer steps a network fits little, even few images.
FEWEST_STEPS = 150


def table_and_fold(config: Config) -> dict[str, Any]:
    """What every reader of a folder takes: the table of labels, and which of how many parts tests, counted from 0."""
    labels = Path(config.labels) if config.labels else None
    return {"labels": labels, "fold": (config.fold or 1) - 1, "folds": config.folds}


def splits_of_table(config: Config, folder: str = "") -> tuple[str, ...]:
    """The splits that a table names of the files in a folder of the data; all three where there is no table."""
    if config.labels is None:
        return SPLITS
    return named_splits(read_table(Path(config.labels), Path(str(config.data)) / folder, config.label_type).splits)


def named_splits(given: tuple[str, ...] | None) -> tuple[str, ...]:
    """The splits that a table or folders name, which may leave testing out; all three where they name none."""
    return tuple(split for split in SPLITS if split in given) if given else SPLITS


def resnet_widths(network: Network, space: tuple[int, ...]) -> tuple[int, ...]:
    """The default widths of a ResNet, two for each stage; no stages at which an image would be less than a window."""
    widths = WIDTHS[known(network.architecture)]
    if network.architecture > 1:
        window = max(sizes("network", "kernel_size", network.kernel_size, len(space)))
        room = sum(kept(min(space), 2 ** (stage + 1)) >= window for stage in range(1, len(widths) // 2))
        widths = widths[: 2 * (1 + room)]
    return widths


def remarks(defaults: Network, config: Config, train: Split) -> list[str]:
    """What is to be said of the images that are trained on, and of what the defaults make of them."""
    training, network = config.training, config.network
    a_step = min(training.batch_size, len(train))
    an_epoch = len(train) // max(1, a_step)
    steps, epochs = an_epoch * training.epochs, "1 epoch" if training.epochs == 1 else f"{training.epochs} epochs"
    text = f"{len(train):,} for training, {a_step} per step: {steps:,} steps in {epochs}"
    if 0 < steps < FEWEST_STEPS:
        text += f"; few steps, --epochs {math.ceil(FEWEST_STEPS / an_epoch)} would be better"
    said, widths = [text], fitting_widths(defaults, network, train.space)
    if widths != network.widths and network.network == "classifier":
        size = "×".join(map(str, train.space))
        said.append(f"{size} has room for {len(widths)} layers of the default {len(network.widths)}")
    if network.group in ROTATED and network.max_angle is None and not network.circular_mask and fills_corners(train):
        said.append(
            "the images fill their corners, which come and go when they are rotated: if what counts is in the middle, "
            "--circular-mask keeps the predictions steadier"
        )
    return said


def fills_corners(split: Split) -> bool:
    """Whether most images vary outside of their largest disc as they do inside: tissue does, digits do not."""
    count, outside = min(LOOKED_AT, len(split)), radii(split.space) > min(split.space) / 2
    if count == 0 or outside.sum() < 2:
        return False
    images = as_float(split.__getitems__([i * len(split) // count for i in range(count)])[0])
    varied, inside = images[..., outside].std(-1).mean(1), images[..., ~outside].std(-1).mean(1)
    return bool((varied > inside / 2).float().mean() > 0.5)


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
            self._refuse(name, SETTINGS[name].special or (name == "data" and self.data_help is None))
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
        if ":" not in network.network:
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
