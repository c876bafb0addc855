"""Ordinary networks, to be converted."""

from itertools import pairwise

import torch
from torch import Tensor, nn


class BasicBlock(nn.Module):
    """The block of ResNet-18, with `forward` as people write it."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(out)) + identity)


class ResNet18(nn.Module):
    """ResNet-18 (He et al. 2016) in plain torch; `width` is 64 in the paper."""

    def __init__(self, width: int = 64, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        widths = (width, width, 2 * width, 4 * width, 8 * width)
        self.layers = nn.Sequential(
            *(
                nn.Sequential(BasicBlock(a, b, 1 if i == 0 else 2), BasicBlock(b, b, 1))
                for i, (a, b) in enumerate(pairwise(widths))
            )
        )
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.layers(x)), 1))


def every_kind(channels: int) -> nn.Module:
    """Return a network of every kind of layer that `convert` knows."""
    relu = nn.ReLU()
    return nn.Sequential(
        *(
            nn.Conv2d(channels, 4, 5, padding="same", padding_mode="circular"),
            nn.GroupNorm(2, 4),
            relu,
            nn.Dropout2d(0.2),
        ),
        *(nn.Conv2d(4, 4, 3, padding=1), nn.InstanceNorm2d(4), relu, nn.AvgPool2d(2), nn.MaxPool2d(2)),
        *(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(4, 3, 3, padding="valid"), nn.Dropout(0.1)),
        *(nn.Conv2d(3, 3, 5, padding=2, groups=3, stride=2), nn.ReLU()),
        *(nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(3, 5), nn.Softmax(-1)),
    )
