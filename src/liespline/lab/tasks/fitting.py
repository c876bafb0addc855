"""What users' own data have in common: their sizes and numbers were unknown when the defaults were chosen."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ...models.kit import wide
from ...models.resnet import WIDTHS
from ...nn.resample import kept
from ..data import Split, as_float
from ..data.split import SPLITS
from ..settings import Config, Network
from ..transforms import radii

ROTATED = ("so2", "o2", "sim2", "so3", "o3")
"""Groups that hold every rotation."""
LOOKED_AT = 64
# After fewer steps a network fits little, even few images.
FEWEST_STEPS = 150


def table_and_fold(config: Config) -> dict[str, Any]:
    """What every reader of a folder takes: the table of labels, and which of how many parts tests, counted from 0."""
    labels = Path(config.labels) if config.labels else None
    return {"labels": labels, "fold": (config.fold or 1) - 1, "folds": config.folds}


def named_splits(given: tuple[str, ...] | None) -> tuple[str, ...]:
    """The splits that a table or folders name, which may leave testing out; all three where they name none."""
    return tuple(split for split in SPLITS if split in given) if given else SPLITS


def fitting_widths(defaults: Network, network: Network, space: tuple[int, ...]) -> tuple[int, ...]:
    """The widths asked for; of the default ones, the first few if the last window would not fit into the image.

    The size is halved after every second layer, and only the last one does not pad.
    """
    side, last = (min(space) - 1) // network.stride + 1, wide(network.kernel_size, len(space))
    layers = 2
    while kept(side, 2 ** (layers // 2)) >= last and layers < len(network.widths):
        layers += 1
    return network.widths[:layers] if network.widths == defaults.widths else network.widths


def resnet_widths(network: Network, space: tuple[int, ...]) -> tuple[int, ...]:
    """The default widths of a ResNet, two for each stage; no stages at which an image would be less than a window."""
    widths = WIDTHS[network.architecture]
    if network.architecture > 1:
        stages = range(1, len(widths) // 2)
        room = sum(kept(min(space), 2 ** (stage + 1)) >= network.kernel_size for stage in stages)
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
