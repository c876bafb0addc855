"""The augmentations of images and volumes that are sorted into classes."""

from collections.abc import Callable, Mapping

from torch import nn

from ..data.augment import Affine, FlipRotate, Flips, Plain, Rotate, Spin
from ..data.elastic import Elastic
from ..settings import Config

_MOVES: Mapping[str, Callable[[Config], nn.Module]] = {
    "none": lambda config: Plain(),
    "turns": lambda config: Rotate(),
    "rotate": lambda config: Rotate(),  # the same, as older configurations call it
    "flips": lambda config: Flips(),
    "flips-turns": lambda config: FlipRotate(),
    "affine": lambda config: Affine(),
    "slant": lambda config: Affine(turned=False),
}
VOLUME_MOVES = {**_MOVES, "spin": lambda config: Spin()}
MOVES = {
    **_MOVES,
    "mirror": lambda config: Affine(turned=False, mirrored=True),
    "elastic": lambda config: Elastic(),
    "elastic-slant": lambda config: Elastic(turned=False),
}
