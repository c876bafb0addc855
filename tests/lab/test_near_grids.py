"""Networks that are equivariant near the identity alone (`--set max_angle=…`), and kernels that keep elements apart."""

import math

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounter

from lab.matrix_sets import same_sets
from liespline import SO2, GConv, Project, Trivial, uniform
from liespline.lab.runs.folder import Run
from liespline.lab.session import Session
from liespline.lab.settings import Config, ConfigError, Network, Training
from liespline.lab.tasks.grids import make_grid
from liespline.lab.training import train as training
from liespline.lab.training.learner import a_shift, windows_stay
from liespline.lab.training.train import preflight
from liespline.models import classifier
from liespline.models.kernels import h_basis
from liespline.nn import shift


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
        grid = make_grid(Network(group=group, elements=n_h, max_angle=27), 2)
        assert same_sets(grid.group.matrix(grid.elements), elements), group
        # Of these groups all but GL(2), in its chart, have a Haar measure that is constant in the algebra.
        assert torch.allclose(grid.weights, torch.ones(len(grid), dtype=torch.float64), rtol=0.02)
    with pytest.raises(ConfigError, match=r"max_angle = 27.* for so2, sim2 and gl2; leave it out for scale"):
        make_grid(Network(group="scale", elements=3, max_angle=27), 2)


@pytest.mark.parametrize(("kernel", "meet"), [("pointwise", False), ("local", True)])
def test_elements_are_kept_apart_until_they_are_projected(kernel, meet):
    """A change of one element's field reaches no other; by the local kernels, planted as a fault, it does."""
    grid = make_grid(Network(group="gl2", elements=(3, 2, 2, 1), max_angle=27), 2)
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
    grid = make_grid(Network(group="so2", elements=3, max_angle=135), 2)  # quarter turns to either side
    net = classifier(1, 4, grid, widths=(2, 2, 3), kernel="pointwise").eval()
    plain = classifier(1, 4, uniform(Trivial(2), 1), widths=(2, 2, 3)).eval()
    with torch.no_grad():
        for parameter, own in zip(net.parameters(), plain.parameters(), strict=True):
            own.copy_(parameter.view(own.shape))
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
    with pytest.raises(ValueError, match=r"n_k = 3: a pointwise kernel is one spline"):
        h_basis(uniform(SO2(), 8), "pointwise", 3)


@pytest.mark.parametrize(("group", "n_h"), [("gl2", (3, 2, 2, 1)), ("sim2", (3, 2)), ("so2", 3)])
def test_a_network_is_compiled_unless_its_windows_would_have_it_compiled_again(group, n_h):
    grid = make_grid(Network(group=group, elements=n_h, max_angle=27), 2)
    net = classifier(1, 2, grid, widths=(1, 1), kernel="pointwise")
    counted, image = CompileCounter(), torch.randn(1, 1, 12, 12)
    compiled = torch.compile(lambda x: net(x), backend=counted)
    for seed in range(20, 26):
        with shift(net, a_shift(net, seed)), torch.no_grad():
            compiled(image)
    torch.compiler.reset()
    assert windows_stay(net, Training(grid_jitter=1.0)) == (counted.frame_count == 1) == (group != "gl2")
    assert windows_stay(net, Training(grid_jitter=0.0))


def test_who_asks_for_it_all_the_same_is_told(tmp_path, monkeypatch):
    small = {"group": "gl2", "elements": (2, 2, 1, 1), "max_angle": 27, "kernel": "pointwise", "widths": (1, 1, 1, 1)}
    config = Config("digits").updated(**small, epochs=1, train_fraction=0.05, accelerator="cpu")
    config = config.updated(grid_jitter=1.0, compile=True)
    assert any("--compile is left out: windows change" in remark for remark in preflight(Session(config)))
    assert not preflight(Session(config.updated(group="sim2", elements=(2, 2))))
    asked = []
    monkeypatch.setattr(training.Learner, "compile_network", asked.append)
    training.train(Session(config, Run.create(tmp_path / "gl2", config)), progress=False)
    assert not asked
