"""The augmentations of images and volumes that are sorted into classes."""

from collections.abc import Callable, Mapping

from torch import nn

from ..data.augment import Affine, FlipRotate, Flips, Plain, Rotate
from ..data.elastic import Elastic
from ..settings import Config

VOLUME_MOVES: Mapping[str, Callable[[Config], nn.Module]] = {
    "none": lambda config: Plain(),
    "turns": lambda config: Rotate(),
    "rotate": lambda config: Rotate(),  # the same, as older configurations call it
    "flips": lambda config: Flips(),
    "flips-turns": lambda config: FlipRotate(),
    "affine": lambda config: Affine(),
    "slant": lambda config: Affine(turned=False),
}
MOVES: Mapping[str, Callable[[Config], nn.Module]] = {
    **VOLUME_MOVES,
    "mirror": lambda config: Affine(turned=False, mirrored=True),
    "elastic": lambda config: Elastic(),
    "elastic-slant": lambda config: Elastic(turned=False),
}
