"""Test-time augmentation: the mean prediction over reflected images and over grids between the trained one."""

import itertools

import torch
from torch import Tensor, nn

from ...nn import GridAverage
from ..runs.trained import ONE_OUTPUT, Trained

REFLECTED = ("o2", "o3")
"""Groups whose grids hold the reflections already."""


class FlipAverage(nn.Module):
    """The mean output over the images reflected along every set of axes; maps are reflected back."""

    def __init__(self, network: nn.Module, dimensions: int, maps: bool) -> None:
        super().__init__()
        axes = range(2, 2 + dimensions)
        self.network, self.maps = network, maps
        self.flips = [chosen for count in range(dimensions + 1) for chosen in itertools.combinations(axes, count)]

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of images (B, C, *space)."""
        outputs = [self.network(x.flip(axes)) for axes in self.flips]
        if self.maps:
            outputs = [output.flip(axes) for output, axes in zip(outputs, self.flips, strict=True)]
        return torch.stack(outputs).mean(0)


def augmented(trained: Trained) -> Trained:
    """The network as it predicts by `--tta`: what its grid does not hold already."""
    network, config, signature = trained.network, trained.config, trained.signature
    if config.network.group != "none" and not isinstance(network, GridAverage):
        network = GridAverage(network)
    # A reflected face has its left eye on the right: landmarks have names that reflections exchange.
    if config.network.group not in REFLECTED and signature.kind != "points":
        network = FlipAverage(network, len(signature.space), maps=signature.kind not in ONE_OUTPUT)
    return Trained(network, config, signature, trained.checkpoint_metric).eval()
