"""Parts of the paper's networks and of the classifier that weight counts do not show, each by its own effect."""

import pytest
import torch
from torch import nn

from liespline.models import celeba, pcam
from liespline.models.kit import AtLeast
from liespline.nn import GConv, Lift

pytestmark = pytest.mark.filterwarnings("ignore:.*falls outside:UserWarning")  # the paper's windows do


@pytest.fixture(scope="module")
def faces():
    torch.manual_seed(0)
    return celeba(2, 1, "local").eval()


def images(side=24):
    return torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def test_both_resolutions_reach_the_landmarks(faces):
    x = images()
    width = faces.head[0].in_channels // 2
    fine = faces.fine(x)
    assert fine.shape == (2, width, 24, 24)
    assert faces.coarse(fine).shape == (2, width, 12, 12)
    first = faces.head[0].weight.clone()
    whole = faces(x)
    effects = []
    for half in (slice(0, width), slice(width, None)):
        faces.head[0].weight.copy_(first)
        faces.head[0].weight[:, half] = 0
        effects.append(float((faces(x) - whole).norm()))
    faces.head[0].weight.copy_(first)
    assert min(effects) > 1e-3 * float(whole.norm()), "the skip and the coarse block both count"
    # With the coarse half silenced, a pixel of the image reaches no further than the windows of the fine block.
    faces.head[0].weight[:, width:] = 0
    spot = x.clone()
    spot[:, :, 0, 0] += 1
    reached = (faces(spot) - faces(x)).abs().amax((0, 1)) > 1e-7
    faces.head[0].weight.copy_(first)
    assert bool(reached[0, 0])
    assert not bool(reached[-1, -1])


@torch.no_grad()
def test_the_coarse_block_sees_the_maximum_of_two_by_two(faces):
    fine = torch.rand(1, faces.head[0].in_channels // 2, 8, 8, generator=torch.Generator().manual_seed(1))
    largest = fine.unfold(2, 2, 2).unfold(3, 2, 2).flatten(-2).amax(-1)
    assert torch.equal(faces.coarse[0](fine), largest)
    assert torch.allclose(faces.coarse(fine), faces.coarse[1](largest))


@torch.no_grad()
def test_norms_of_the_papers_networks_add_a_thousandth(faces):
    patches = pcam(1, 1).train()
    for network, lift in ((patches, patches[0]), (faces, faces.fine[0])):
        norm = patches[1] if network is patches else faces.fine[1]
        norm.train()
        x = 0.01 * torch.randn(4, lift.out_channels, 1, 12, 12, generator=torch.Generator().manual_seed(0))
        mean, variance = x.mean((0, 2, 3, 4), keepdim=True), x.var((0, 2, 3, 4), unbiased=False, keepdim=True)
        expected = ((x - mean) / (variance + 1e-3).sqrt()).relu()
        if network is patches:
            expected = nn.functional.max_pool3d(expected, (1, 2, 2))
        assert torch.allclose(norm(x), expected, atol=1e-5)
        assert {m.eps for m in network.modules() if hasattr(m, "running_var")} == {1e-3}, "all of them"
        norm.eval()


def test_biases_are_where_the_paper_has_them(faces):
    patches = pcam(1, 1)
    for network in (patches, faces):
        layers = [m for m in network.modules() if isinstance(m, Lift | GConv | nn.Conv2d)]
        assert all(p.requires_grad for p in network.parameters())
        assert [layer.bias is not None for layer in layers] == [False] * (len(layers) - 1) + [True]
    assert torch.equal([m for m in patches if isinstance(m, nn.Conv2d)][-1].bias, torch.full((2,), 0.01))


@torch.no_grad()
def test_windows_of_the_papers_network_pool_by_two_two_and_three():
    shapes = []
    network = pcam(1, 1).eval()
    for module in network:
        module.register_forward_hook(lambda m, _, out: shapes.append(tuple(out.shape[3:])) if out.ndim == 5 else None)
    network(torch.rand(1, 3, 88, 88))
    assert shapes[:9] == [(s, s) for s in (84, 42, 38, 19, 15, 5, 1, 1, 1)]


def test_only_what_is_smaller_than_a_window_is_padded():
    x = torch.rand(1, 1, 2, 4, 9, 3)
    padded = AtLeast((5, 5, 5))(x)
    assert padded.shape == (1, 1, 2, 6, 9, 5)
    assert torch.equal(padded[..., 1:5, :, 1:4], x)
    assert AtLeast((3, 3, 3))(x) is x
