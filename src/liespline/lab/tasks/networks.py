"""From the words of a configuration to a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from ...models.classifier import classifier
from ...models.resnet import resnet
from ..data import DataError, Split
from ..data.value_range import ValueRange
from ..settings import Config, ConfigError, written
from .defaults import DEFAULTS
from .grids import make_grid, splines

MOST_SAMPLES = 10**8


@dataclass(frozen=True)
class Signature:
    """What goes into a network and what comes out."""

    in_channels: int
    space: tuple[int, ...]
    classes: tuple[str, ...]
    spacing: float | None = None
    """For volumes of their own spacing: the side in millimetres that voxels were brought to."""
    kind: str = "classes"
    """What comes out: one of classes, any of tags, numbers, or points."""
    scaling: tuple[tuple[float, float], ...] = ()
    """Mean and standard deviation of each number in training."""
    values: tuple[int, ...] = ()
    """For masks: what files hold for each class; 0, 1, … where nothing is said."""
    voxels: float | None = None
    """For masks of volumes: the side in millimetres of the usual voxel in training, before it was resampled."""
    value_range: ValueRange | None = None
    """The range of values in training; None where it was not kept, and for volumes normalised each by itself."""

    @staticmethod
    def of(split: Split) -> Signature:
        """The signature that a split of data asks for."""
        scaling: tuple[tuple[float, float], ...] = ()
        if split.kind == "numbers":
            values = split.targets.double()
            spread = values.std(0, correction=0).clamp_min(1e-12)
            scaling = tuple((float(mean), float(std)) for mean, std in zip(values.mean(0), spread, strict=True))
        return Signature(
            split.in_channels, tuple(split.space), tuple(split.classes), split.side, split.kind, scaling,
            split.values, split.voxels,
        )  # fmt: skip

    @staticmethod
    def from_dict(values: Any, where: str) -> Signature:
        """Read it back from a file."""
        try:
            space = tuple(int(size) for size in values["space"])
            side = values.get("spacing")
            classes = tuple(map(str, values["classes"]))
            kind, scaling = str(values.get("kind", "classes")), values.get("scaling", ())
            scaling = tuple((float(mean), float(std)) for mean, std in scaling)
            held, voxels = tuple(int(value) for value in values.get("values", ())), values.get("voxels")
            channels, known = int(values["in_channels"]), values.get("value_range")
            signature = Signature(
                channels, space, classes, None if side is None else float(side), kind, scaling, held,
                None if voxels is None else float(voxels),
                None if known is None else ValueRange.from_dict(known, channels),
            )  # fmt: skip
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise DataError(f"{where}: does not say what the network takes and gives ({error!r})") from error
        if not 1 <= len(space) <= 3 or not 1 <= signature.in_channels <= 4096 or not signature.classes:
            raise DataError(f"{where}: describes no images: {signature}")
        if held and len(held) != len(classes):
            raise DataError(f"{where}: describes no images: {signature}")
        return signature


def make_classifier(config: Config, signature: Signature) -> nn.Module:
    """The general classifier, or the residual one, with the group, kernels and sizes of a configuration."""
    network = config.network
    # Each sample of the window meets each spline in it, at each element of H.
    grid = make_grid(network, len(signature.space))
    if (network.kernel_size ** len(signature.space)) ** 2 * len(grid) > MOST_SAMPLES:
        raise ConfigError(
            f"kernel_size = {network.kernel_size} with n_h = {written(network.n_h)}: windows this large are not made"
        )
    shape = signature.in_channels, len(signature.classes), grid
    options: dict[str, Any] = {"kernel_size": network.kernel_size, "kernel": network.kernel, "dropout": network.dropout}
    options |= {"n_k": splines(network), "parameters": network.weights}
    options |= {"separable": network.separable, "disc": network.disc}
    if network.network == "resnet":
        usual = network.widths == DEFAULTS[config.task].network.widths  # a chain's: a block has two layers
        return resnet(*shape, **options if usual else options | {"widths": network.widths})
    return classifier(*shape, widths=network.widths, stride=network.stride, **options)
