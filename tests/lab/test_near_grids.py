"""Networks that are equivariant near the identity alone (`--within`), and kernels that keep elements apart."""

import math

import numpy as np
import pytest
import torch

from lab.matrix_sets import same_sets
from liespline import SO2, GConv, Project, Trivial, uniform
from liespline.lab.settings import ConfigError, Network
from liespline.lab.tasks.grids import make_grid
from liespline.models import classifier
from liespline.models.kernels import h_basis


def test_within_means_about_the_identity_alone():
    """Each element stands for a step about it; together the steps tile the angles and scales asked for."""
    degrees, half = np.radians([-18, 0, 18]), 0.1
    some = [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in degrees]
    squeezed = [np.diag([math.exp(z + q), math.exp(z - q)]) for z in (-half, half) for q in (-half, half)]
    expected = {
        ("so2", 3): some,
        ("sim2", (3, 2)): [math.exp(z) * r for r in some for z in (-half, half)],
        ("gl2", (3, 2, 2, 1)): [s @ r for s in squeezed for r in some],
    }
    for (group, n_h), elements in expected.items():
        grid = make_grid(Network(group=group, n_h=n_h, within=27), 2)
        assert same_sets(grid.group.matrix(grid.elements), elements), group
        # Of these groups all but GL(2), in its chart, have a Haar measure that is constant in the algebra.
        assert torch.allclose(grid.weights, torch.ones(len(grid), dtype=torch.float64), rtol=0.02)
    with pytest.raises(ConfigError, match=r"within = 27.* for so2, sim2 and gl2; leave it out for scale"):
        make_grid(Network(group="scale", n_h=3, within=27), 2)


@pytest.mark.parametrize(("kernel", "meet"), [("apart", False), ("local", True)])
def test_elements_are_kept_apart_until_they_are_projected(kernel, meet):
    """A change of one element's field reaches no other; by the local kernels, planted as a fault, it does."""
    grid = make_grid(Network(group="gl2", n_h=(3, 2, 2, 1), within=27), 2)
    layer = GConv(2, 3, 5, grid, h_basis=h_basis(grid, kernel, 1), padding=2)
    x = torch.randn(1, 2, len(grid), 9, 9)
    changed = x.clone()
    changed[:, :, 4] += 1
    difference = (layer(changed) - layer(x)).abs().amax((0, 1, 3, 4))
    assert difference[4] > 0.1
    others = torch.arange(len(grid)) != 4
    assert bool(difference[others].max() > 1e-3) == meet
    assert difference[others].max() < 1e-5 or meet


def test_a_digit_moved_by_an_element_is_told_as_it_was():
    """Trained or not, a network that keeps elements apart answers as the plain one whose kernels are all moved."""
    grid = make_grid(Network(group="so2", n_h=3, within=135), 2)  # quarter turns to either side
    net = classifier(1, 4, grid, widths=(2, 2, 3), kernel="apart").eval()
    plain = classifier(1, 4, uniform(Trivial(2), 1), widths=(2, 2, 3)).eval()
    state = plain.state_dict()
    for value, own in zip(net.state_dict().values(), state, strict=True):
        state[own] = value.view(state[own].shape)
    plain.load_state_dict(state)
    image = torch.randn(1, 1, 20, 20)
    heads = []  # before the maximum over H
    for network in (net, plain):
        stage = next(m for m in network if isinstance(m, Project))
        stage.register_forward_hook(lambda m, inputs, output: heads.append(inputs[0]))
    net(image)
    for element, back in enumerate((1, 0, -1)):
        plain(torch.rot90(image, back, (-2, -1)))
        turned = torch.rot90(heads[-1][:, :, 0], -back, (-2, -1))
        assert torch.allclose(heads[0][:, :, element], turned, atol=1e-5)


def test_a_kernel_that_keeps_apart_is_one_spline():
    with pytest.raises(ValueError, match=r"n_k = 3: a kernel that keeps elements apart is one spline"):
        h_basis(uniform(SO2(), 8), "apart", 3)
