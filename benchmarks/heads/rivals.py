"""escnn's networks beside our chain: the same plan on regular fields of C_16 or D_16, as many weights.

What is escnn's own: kernels, norm, ReLU, Gaussian smoothing before every halving, pooling over the group. Its filters
have odd sizes only, so it is centred on odd images: give it digits on 29×29 points about the same centre (29, 15, 7).
escnn 1.0.11 wants numpy, scipy and joblib; lie_learn is imported, but not used for the plane.
"""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

SIDE = 29
SIGMA = 0.66
"""Deviation of the Gaussian before a halving, as in escnn's own example for rotated MNIST."""


def installed() -> bool:
    return importlib.util.find_spec("escnn") is not None


class Escnn(nn.Module):
    """7×7, then 5×5 with halvings before the third and fifth layer, a last window of 7×7 that sees all positions.

    Shapes: (B, 1, 29, 29) -> (B, 10).
    """

    def __init__(self, widths: tuple[int, ...], *, mirror: bool = False, orientations: int = 16) -> None:
        super().__init__()
        from escnn import gspaces
        from escnn import nn as enn
        from escnn.group import _numerical

        _numerical.randomized_svd = None  # scikit-learn no longer takes np.matrix; without it escnn asks scipy
        plane = (gspaces.flipRot2dOnR2 if mirror else gspaces.rot2dOnR2)(orientations)
        self.wrap = enn.GeometricTensor
        self.image = enn.FieldType(plane, [plane.trivial_repr])
        fields = [enn.FieldType(plane, width * [plane.regular_repr]) for width in widths]

        def block(source: Any, target: Any, window: int, padding: int) -> list[nn.Module]:
            layer = enn.R2Conv(source, target, window, padding=padding, bias=False)
            return [layer, enn.InnerBatchNorm(target), enn.ReLU(target, inplace=True)]

        layers = block(self.image, fields[0], 7, 3)
        for i, (source, target) in enumerate(pairwise(fields), 1):
            if i in (2, 4):  # 29 → 15 → 7: both keep the centre
                layers.append(enn.PointwiseAvgPoolAntialiased(source, SIGMA, stride=2, padding=2 if i == 2 else 1))
            layers += block(source, target, *((7, 0) if i == len(widths) - 1 else (5, 2)))
        self.features = enn.SequentialModule(*layers, enn.GroupPooling(fields[-1]))
        c = widths[-1]
        self.classes = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, c), nn.ReLU(), nn.Dropout(0.3), nn.Linear(c, 10)
        )

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.classes(self.features(self.wrap(images, self.image)).tensor)
        return found


@torch.no_grad()
def quarter_turns(net: nn.Module) -> float:
    """By how much of its spread the output changes when images are turned by 90°."""
    net.eval()
    images = torch.rand(32, 1, SIDE, SIDE)
    scores = net(images)
    return float((net(images.rot90(1, (-2, -1))) - scores).norm() / (scores - scores.mean(0)).norm())
