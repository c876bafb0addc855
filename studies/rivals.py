"""Networks that are not ours, for `--set network=studies.rivals:NAME`: ordinary convolutions, and escnn's.

`conv` and `conv_resnet` are `nn.Conv2d` and batch norm in the plans of our networks. escnn's are the plan
of its authors' network for rotated MNIST on regular fields of C_16, with its own filters, smoothing and pooling over
the group; its filters are centred on odd images alone, so digits are put on 29×29 points about the same centre.
`escnn_c16` has its own batch norm and `escnn_c16_our_norm` ours, the same function, which is faster. escnn 1.0.11 is no
dependency of liespline.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from liespline.nn import NormReLU

FIELDS = (14, 19, 22, 22, 38, 58)
SIGMA = 0.66
"""Deviation of the Gaussian before a halving, as in escnn's own example for rotated MNIST."""


def head(channels: int, classes: int) -> list[nn.Module]:
    """Maps to classes, as our chain ends."""
    return [
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, channels), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(channels, classes),
    ]  # fmt: skip


def convolutions(in_channels: int, classes: int, widths: Sequence[int]) -> nn.Module:
    """7×7, then 5×5, halved in the second and fourth layer, a last window that sees all positions."""
    layers: list[nn.Module] = []
    last = len(widths) - 1
    for i, (source, target) in enumerate(pairwise((in_channels, *widths))):
        size, padding = (7, 3 if i == 0 else 0) if i in (0, last) else (5, 2)
        stride = 2 if i in (2, 4) else 1
        layers += [nn.Conv2d(source, target, size, stride, padding, bias=False), nn.BatchNorm2d(target), nn.ReLU()]
    return nn.Sequential(*layers, *head(widths[-1], classes))


def conv(in_channels: int, classes: int) -> nn.Module:
    """Of about a million parameters."""
    return convolutions(in_channels, classes, (44, 60, 68, 68, 92, 124))


class Block(nn.Module):
    """A residual block of two 3×3 convolutions with pre-activation."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.BatchNorm2d(inputs), nn.ReLU(), nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs), nn.ReLU(), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
        )  # fmt: skip
        same = inputs == outputs and stride == 1
        self.skip = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """x + branch(x)."""
        out: Tensor = self.skip(x) + self.branch(x)
        return out


def conv_resnet(in_channels: int, classes: int) -> nn.Module:
    """An ordinary residual network of about 117,000 parameters, in the plan of our `models.resnet`."""
    w = 26
    blocks = [Block(w, w, 1), Block(w, w, 1), Block(w, 2 * w, 2), Block(2 * w, 2 * w, 1)]
    stem = nn.Conv2d(in_channels, w, 5, 2, 2, bias=False)
    return nn.Sequential(stem, *blocks, nn.BatchNorm2d(2 * w), nn.ReLU(), *head(2 * w, classes))


class OurNorm(nn.Module):
    """Batch norm and ReLU by liespline on regular fields of escnn."""

    def __init__(self, fields: Any, wrap: Any) -> None:
        super().__init__()
        self.fields, self.wrap, self.orientations = fields, wrap, fields.representations[0].size
        self.norm = NormReLU(len(fields))

    def forward(self, x: Any) -> Any:
        """Fields (B, C·N, H, W)."""
        return self.wrap(self.norm(x.tensor.unflatten(1, (-1, self.orientations))).flatten(1, 2), self.fields)


class Escnn(nn.Module):
    """7×7, then 5×5 with halvings before the third and fifth layer, and a last window of 7×7."""

    def __init__(self, in_channels: int, classes: int, *, own_norm: bool) -> None:
        super().__init__()
        from escnn import gspaces
        from escnn import nn as enn
        from escnn.group import _numerical

        _numerical.randomized_svd = None  # scikit-learn no longer takes np.matrix; without it escnn asks scipy
        plane = gspaces.rot2dOnR2(16)
        self.wrap = enn.GeometricTensor
        self.image = enn.FieldType(plane, in_channels * [plane.trivial_repr])
        fields = [enn.FieldType(plane, width * [plane.regular_repr]) for width in FIELDS]
        layers: list[nn.Module] = []
        for i, (source, target) in enumerate(pairwise((self.image, *fields))):
            if i in (2, 4):  # 29 → 15 → 7: both keep the centre
                layers.append(enn.PointwiseAvgPoolAntialiased(source, SIGMA, stride=2, padding=2 if i == 2 else 1))
            window, padding = (7, 3) if i == 0 else (7, 0) if i == len(fields) - 1 else (5, 2)
            layers.append(enn.R2Conv(source, target, window, padding=padding, bias=False))
            layers += (
                [enn.InnerBatchNorm(target), enn.ReLU(target, inplace=True)]
                if own_norm
                else [OurNorm(target, self.wrap)]
            )
        self.features = nn.Sequential(*layers, enn.GroupPooling(fields[-1]))
        self.classes = nn.Sequential(*head(FIELDS[-1], classes))

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, 29, 29) → (B, classes)."""
        found: Tensor = self.classes(self.features(self.wrap(images, self.image)).tensor)
        return found


def escnn_c16(in_channels: int, classes: int) -> nn.Module:
    """escnn with its own batch norm."""
    return Escnn(in_channels, classes, own_norm=True)


def escnn_c16_our_norm(in_channels: int, classes: int) -> nn.Module:
    """escnn with our batch norm."""
    return Escnn(in_channels, classes, own_norm=False)
