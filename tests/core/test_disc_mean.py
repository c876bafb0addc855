"""The mean over a disc: its weights by hand, and that what fills an image turns without a change of the answer."""

import math

import pytest
import torch
from scipy import ndimage

import liespline as ls
from liespline import models
from liespline.models.kit import DiscMean


@pytest.mark.parametrize("space", [(6,), (5, 5), (6, 9), (1, 1), (4, 5, 6)])
def test_weights_by_hand(space):
    """cos²(πr/2R) with R half a sample beyond the last one of the shortest side, one sample after the other."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, *space, dtype=torch.float64)
    total, weights = torch.zeros(2, 3, dtype=torch.float64), 0.0
    largest = (min(space) + 1) / 2
    for index in torch.cartesian_prod(*(torch.arange(n) for n in space)).reshape(-1, len(space)).tolist():
        radius = math.dist(index, [(n - 1) / 2 for n in space])
        weight = math.cos(math.pi / 2 * radius / largest) ** 2 if radius < largest else 0.0
        total, weights = total + weight * x[(..., *index)], weights + weight
    found = DiscMean()(x)
    assert found.shape == (2, 3, *(1,) * len(space))
    assert torch.allclose(found.flatten(1), total / weights, atol=1e-6, rtol=0)  # the weights are float32


@pytest.mark.parametrize("name", ["classifier", "resnet"])
def test_texture_that_fills_an_image_turns_without_a_change(name):
    """A smooth texture, larger than the image and turned by SciPy: a square mean, planted as a fault, sees corners."""
    generator = torch.Generator().manual_seed(0)
    texture = ndimage.gaussian_filter(torch.randn(8, 2, 160, 160, generator=generator).numpy(), (0, 0, 2.5, 2.5))
    texture = texture / texture.std()

    def middle(angle):
        turned = ndimage.rotate(texture, angle, (2, 3), reshape=False, order=3)
        return torch.from_numpy(turned[:, :, 44:116, 44:116].copy())

    grid, changes = ls.uniform(ls.SO2(), 8), {}
    for disc in (False, True):
        torch.manual_seed(1)
        net = getattr(models, name)(2, 12, grid, widths=(4, 4, 8, 8), dropout=0.0, disc=disc)
        net.train()
        for _ in range(20):
            net(middle(0))
        net.eval()
        with torch.no_grad():
            upright = net(middle(0))
            spread = (upright - upright.mean(0)).norm()
            changes[disc] = max(float((net(middle(angle)) - upright).norm() / spread) for angle in (15, 30, 45))
    assert changes[True] < 0.5 * changes[False]
    assert changes[True] < 0.15
