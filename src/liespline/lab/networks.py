"""From a configuration to its network: what goes in and out, and every architecture with a function that makes it.

The configuration and the signature say all there is to know: a trained network is made again without its task.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Self

import torch
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as checked_dataclass
from torch import Tensor, nn

from .. import models
from .._check import sizes
from ..grids import Grid
from ..models.classifier import classifier
from ..models.kit import wide
from ..models.resnet import resnet
from ..models.unet import unet
from ..models.widths import VERSION
from ..nn import Ensemble
from ..nn.resample import kept
from .data import DataError, Split
from .data.samples import ValueRange
from .named import named
from .settings import SETTINGS, Config, ConfigError, Network, written
from .settings.words import shown
from .tasks.grids import make_grid, of_the_paper, restrictions, splines

MOST_SAMPLES = 10**8


@checked_dataclass(frozen=True)
class Signature:
    """What goes into a network and what comes out."""

    in_channels: Annotated[int, Field(ge=1, le=4096)]
    space: Annotated[tuple[int, ...], Field(min_length=1, max_length=3)]
    classes: Annotated[tuple[str, ...], Field(min_length=1)]
    spacing: float | None = None
    """For volumes of their own spacing: the side in millimetres that voxels were brought to."""
    kind: str = "classes"
    """What comes out: one of classes, any of tags, numbers, or points."""
    scaling: tuple[tuple[float, float], ...] = ()
    """Mean and standard deviation of each number in training."""
    values: tuple[int, ...] = ()
    """For masks: what files hold for each class; 0, 1, … where nothing is said."""
    voxels: float | None = None
    """For volumes of their own spacing: the side in millimetres of the usual voxel in training, as it is stored."""
    value_range: ValueRange | None = None
    """The range of values in training; None where it was not kept, and for volumes normalised each by itself."""
    whole: tuple[int, ...] = ()
    """Sides of the stored images whose middle is what goes in; none where that is all of them."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.values and len(self.values) != len(self.classes):
            raise ValueError(f"{len(self.values)} values of masks for {len(self.classes)} classes")
        if self.whole and (len(self.whole) != len(self.space) or any(map(int.__gt__, self.space, self.whole))):
            raise ValueError(f"{self.space} cut out of {self.whole}")
        if self.value_range is not None and not self.value_range.is_of(self.in_channels):
            raise ValueError(f"value_range is none of {self.in_channels} channels")
        return self

    @classmethod
    def of(cls, split: Split) -> Self:
        """The signature that a split of data asks for."""
        scaling: tuple[tuple[float, float], ...] = ()
        if split.kind == "numbers":
            values = split.targets.double()
            spread = values.std(0, correction=0).clamp_min(1e-12)
            scaling = tuple(zip(values.mean(0).tolist(), spread.tolist(), strict=True))
        return cls(
            split.in_channels, tuple(split.space), tuple(split.classes), split.side, split.kind, scaling,
            split.values, split.voxels, whole=split.whole,
        )  # fmt: skip

    @classmethod
    def from_dict(cls, values: Any, where: str) -> Self:
        """Read it back from a file."""
        try:
            return cls(**values)
        except (TypeError, ValueError) as error:
            raise DataError(f"{where}: does not say what the network takes and gives ({shown(error)})") from error


class Architecture(NamedTuple):
    """A kind of network."""

    make: Callable[[Config, Signature], nn.Module]
    multiple: Callable[[Network], int] = lambda network: 1
    """For networks whose output is maps: sides of images must be multiples of this."""


def build(config: Config, signature: Signature) -> nn.Module:
    """The network of a configuration, or an ensemble that has its parameters together."""
    network = config.network
    if network.architecture > VERSION:
        raise ConfigError(
            f"architecture = {network.architecture}: this liespline makes networks up to version {VERSION}; update it"
        )
    make = architecture(config).make
    count, parameters = network.ensemble, network.parameters
    one = config.updated(parameters=max(1, parameters // count) if parameters else None)
    try:
        return Ensemble(make(one, signature) for _ in range(count)) if count > 1 else make(one, signature)
    except ValueError as error:  # the layers call it as in the paper
        raise type(error)(str(error).replace("n_k", "basis")) from error


def multiple_of(network: Network) -> int:
    """What the sides of images must be multiples of."""
    return NETWORKS[network.network].multiple(network) if network.network in NETWORKS else 1


def architecture(config: Config) -> Architecture:
    """The kind of network that a configuration names; from outside a function of `in_channels` and `classes`."""
    word = config.network.network
    if word in NETWORKS:
        return NETWORKS[word]
    make, place, _ = named("network", word, None, "networks.py:small")
    if not callable(make):
        raise ConfigError(
            f"network {word}: {place} has no function of that name; expected NAME(in_channels=, classes=)"
        )
    return Architecture(
        lambda config, signature: make(in_channels=signature.in_channels, classes=len(signature.classes))
    )


class InUnits(nn.Module):
    """Standardised outputs back in the units of the table: y·std + mean."""

    mean: Tensor
    std: Tensor

    def __init__(self, scaling: Sequence[tuple[float, float]]) -> None:
        super().__init__()
        mean, std = torch.tensor(scaling).T
        self.register_buffer("mean", mean, persistent=False)
        self.register_buffer("std", std, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, names)."""
        return x * self.std + self.mean


def _general(config: Config, signature: Signature) -> nn.Module:
    """The general classifier, or the residual one; numbers come out in their units."""
    network = config.network
    # Each sample of the window meets each spline in it, at each element of H.
    grid = make_grid(network, len(signature.space))
    window = sizes("network", "kernel_size", network.kernel_size, len(signature.space))
    if math.prod(window) ** 2 * len(grid) > MOST_SAMPLES:
        raise ConfigError(
            f"kernel_size = {written(network.kernel_size)} with elements = {written(network.elements)}: "
            "windows this large are not made"
        )
    options = _sizes(network, grid) | {"dropout": network.dropout, "disc": network.circular_mask}
    options["project"] = network.project
    shape = signature.in_channels, len(signature.classes), grid
    if network.network == "resnet":
        if isinstance(network.kernel_size, tuple):
            raise ConfigError(f"kernel_size = {written(network.kernel_size)}: --network resnet takes one number")
        made = resnet(*shape, **options)
    else:
        made = classifier(*shape, stride=network.stride, **options)
    return nn.Sequential(made, InUnits(signature.scaling)) if signature.kind == "numbers" else made


def _unet(config: Config, signature: Signature) -> nn.Module:
    """A U-Net with the group, kernels and sizes of a configuration."""
    grid = make_grid(config.network, len(signature.space))
    return unet(signature.in_channels, len(signature.classes), grid, **_sizes(config.network, grid))


def _sizes(network: Network, grid: Grid) -> dict[str, Any]:
    """What the classifiers and the U-Net have in common."""
    return {
        "widths": network.widths,
        "kernel_size": network.kernel_size,
        "kernel": network.kernel,
        "n_k": splines(network),
        "separable": network.separable,
        "parameters": network.parameters,
        "version": network.architecture,
        "activation": network.activation,
        "smooth": network.smooth,
        "breaking": network.breaking,
        "restrict": restrictions(network, grid),
        "norm": network.norm,
    }


def _pcam(config: Config, signature: Signature) -> nn.Module:
    """The network of the paper's table with the configuration's N_h, N_k and kernel; group none is its 2-D column.

    With windows of 7×7 it is the same chain made for rotations: it halves with smoothing, and its windows hold their
    splines whole.
    """
    choice = config.network
    if choice.kernel_size not in (5, 7):
        raise ConfigError(
            f"kernel_size = {written(choice.kernel_size)}: the paper's network has 5, or 7 to hold splines whole"
        )
    shape = ("separable", "widths", "parameters", "circular_mask")
    for name in (*shape, "dropout", "activation", "smooth", "breaking", "restrict", "project", "norm"):
        if config[name] != SETTINGS[name].default:
            option = SETTINGS[name].option
            raise ConfigError(f"{option} does nothing with the paper's network; leave it out, or say --network resnet")
    n_h, n_k = of_the_paper(choice, "so2")
    return models.pcam(n_h, n_k, choice.kernel, kernel_size=choice.kernel_size)


def _celeba(config: Config, signature: Signature) -> nn.Module:
    """The network of the paper's table for these images and as many points; group none is its 2-D column."""
    choice, points = config.network, len(signature.classes)
    n_h, n_k = of_the_paper(choice, "scale")
    return models.celeba(
        n_h, n_k, choice.kernel, scale=choice.scale, preset=config.preset, in_channels=signature.in_channels,
        landmarks=points,
    )  # fmt: skip


def fitting_widths(defaults: Network, network: Network, space: tuple[int, ...]) -> tuple[int, ...]:
    """The widths asked for; of the default ones, the first few if the last window would not fit into the image.

    The size is halved after every second layer, and only the last one does not pad.
    """
    windows = [wide(side, len(space)) for side in sizes("network", "kernel_size", network.kernel_size, len(space))]
    axes = [((side - 1) // network.stride + 1, window) for side, window in zip(space, windows, strict=True)]
    layers = 2
    while all(kept(n, 2 ** (layers // 2)) >= last for n, last in axes) and layers < len(network.widths):
        layers += 1
    return network.widths[:layers] if network.widths == defaults.widths else network.widths


NETWORKS: Mapping[str, Architecture] = {
    "classifier": Architecture(_general),
    "resnet": Architecture(_general),
    "unet": Architecture(_unet, lambda network: int(2 ** (len(network.widths) - 1))),
    "pcam": Architecture(_pcam),
    "celeba": Architecture(_celeba, lambda network: 2),
}
