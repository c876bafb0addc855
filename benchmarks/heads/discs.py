"""Features that are zero outside a disc: then the border of a padded layer turns with the image, as a square does not.

A padded layer sees zeros beyond the border. Where nothing is in view, features have a value of their own that is not
zero, so the border is an edge, and a square one. On the small maps at the end of a chain it is near everywhere.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from liespline.nn import NormReLU


class Disc(nn.Module):
    """Feature maps `(B, C, N_h, *space)` times the largest disc in view, whose edge is one sample wide."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        axis = torch.arange(n, device=x.device) - (n - 1) / 2
        radius = (axis.square()[:, None] + axis.square()).sqrt()
        return x * ((n + 1) / 2 - radius).clamp(0, 1).to(x.dtype)


def in_discs(net: nn.Module) -> nn.Module:
    """The network with a disc after every activation on feature maps; its weights are what they were."""
    layers: list[nn.Module] = []
    for layer in net.children():
        layers += [layer, Disc()] if isinstance(layer, NormReLU) else [layer]
    return nn.Sequential(*layers)
