"""Elements that images are transformed by, and grids near the identity."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

from lab.data_files import same_sets
from liespline import SO2, SO3, GConv, Project, Trivial, repulsion, uniform
from liespline.lab.evaluation.elements import copies_of, on_grid, transforms_of
from liespline.lab.networks import Signature
from liespline.lab.runs.folder import Run
from liespline.lab.runs.trained import Trained
from liespline.lab.session import Session
from liespline.lab.settings import Config, ConfigError, Network, Training
from liespline.lab.tasks.grids import make_grid
from liespline.lab.training import train as training
from liespline.lab.training.learner import a_shift, windows_stay
from liespline.lab.training.train import preflight
from liespline.models import classifier
from liespline.models.kernels import h_basis
from liespline.nn import shift


def trained(group, n=1, d=2, **settings):
    config = Config("images").updated(group=group, elements=n, **settings)
    return Trained(nn.Linear(1, 1), config, Signature(1, (9,) * d, ("a", "b")))


def matrices(elements):
    return elements.group.matrix(elements.values)


def test_every_network_sees_the_same_angles_and_some_between_its_own():
    """Networks of several groups compare only where the same images come to them."""
    found = {}
    for group, n in (("so2", 12), ("o2", 12), ("none", 1)):
        elements = transforms_of(trained(group, n))
        matrix = matrices(elements)
        rotations = matrix[torch.linalg.det(matrix) > 0]
        angles = torch.rad2deg(torch.atan2(rotations[:, 1, 0], rotations[:, 0, 0])) % 360
        found[group] = sorted(angles.round(decimals=6).tolist())
        named = [float(label.split("°")[0]) for label in elements.labels[: len(rotations)]]
        assert np.allclose(named, angles.round(decimals=6)), "a label says what was done"
    assert found["so2"] == found["o2"] == found["none"] == [15.0 * i for i in range(24)]
    for orientations in (8, 12):
        between = [abs(angle / 360 * orientations % 1 - 0.5) < 0.499 for angle in found["so2"]]
        assert sum(between) >= 12, "half of the angles or more lie between those of a grid"


@pytest.mark.parametrize(("group", "d"), [("o2", 2), ("sim2", 2), ("gl2", 2), ("o3", 3)])
def test_images_are_transformed_by_what_the_group_does(group, d):
    elements = transforms_of(trained(group, d=d))
    matrix = matrices(elements)
    assert len(set(elements.labels)) >= len(elements.labels) - 6 * (d == 3)
    assert torch.allclose(matrix[0], torch.eye(d, dtype=torch.float64))
    stretch = torch.linalg.matrix_norm(matrix, 2).tolist()
    for label, det, s in zip(elements.labels, torch.linalg.det(matrix).tolist(), stretch, strict=True):
        expected = -1 if "reflected" in label else 0.5 if "0.71" in label else 0.25 if "0.5" in label else 1
        assert det == pytest.approx(expected)
        assert s == pytest.approx(math.exp(0.3) if "squeezed" in label else math.sqrt(abs(expected)))


def test_networks_of_one_generated_set_are_tested_alike():
    """Rotated only, a network of rotations would meet none of the small digits that the others are scored on."""
    cases = (("sim2", (8, 3)), ("so2", 16), ("none", 1))
    one, *others = (matrices(transforms_of(trained(*case, transformation="rotated-scaled"))) for case in cases)
    assert all(torch.equal(one, other) for other in others)
    assert torch.linalg.det(one).min() == pytest.approx(0.25)


@pytest.mark.parametrize("group", ["so3", "o3", "none"])
def test_volumes_are_rotated_between_the_rotations_of_their_voxels(group):
    """Twelve rotations that lie evenly are those of a tetrahedron, planted as a fault: they cost nothing."""

    def angle_to_the_voxels(rotations):
        """The angle to the nearest of the 48 signed permutations of the axes."""
        orders = torch.eye(3, dtype=torch.float64)[torch.tensor(list(itertools.permutations(range(3))))]
        signs = torch.tensor(list(itertools.product((1.0, -1.0), repeat=3)), dtype=torch.float64)
        traces = torch.einsum("nij,mij->nm", rotations, (signs[:, None, :, None] * orders).flatten(0, 1)).amax(1)
        return torch.rad2deg(torch.arccos(((traces - 1) / 2).clamp(-1, 1)))

    rotated = matrices(transforms_of(trained(group, 1 if group == "none" else 24, d=3)))
    angles = angle_to_the_voxels(rotated[rotated[:, 0, 0].abs() < 1 - 1e-9])
    assert len(angles) >= 12
    assert angles.mean() > 25
    assert angles.min() > 5
    assert angle_to_the_voxels(repulsion(SO3(), 12).elements).max() < 1e-3


def copies_and_grid(group, n):
    network = trained(group, n, d=3 if group in ("so3", "o3") else 2)
    return copies_of(network), make_grid(network.config.network, len(network.signature.space))


@pytest.mark.parametrize("orientations", [2, 4, 6, 8, 12, 16, 24])
def test_copies_lie_on_and_between_the_orientations_of_a_grid(orientations):
    """By angles alone: which differ by a multiple of the grid's step."""
    copies, grid = copies_and_grid("so2", orientations)
    angles = np.degrees(copies.values[:, 0].numpy())
    step, off = 360 / orientations, np.abs(angles[:, None] - angles)
    on = np.isclose(off / step, np.round(off / step), atol=1e-9)
    assert (on_grid(grid, copies).numpy() == on).all()
    pairs = on[np.triu_indices(len(angles), 1)]
    assert 0 < pairs.sum() < 0.6 * len(pairs)
    assert np.abs((angles + 45) % 90 - 45).min() > 5, "no copy is a quarter turn, which costs no interpolation"


@pytest.mark.parametrize(
    ("group", "n"), [("o2", 8), ("sim2", (8, 3)), ("gl2", (8, 1, 3, 3)), ("scale", 4), ("so3", 24), ("o3", 24)]
)
def test_copies_of_every_group_lie_on_and_between_its_grid(group, n):
    copies, grid = copies_and_grid(group, n)
    pairs = on_grid(grid, copies)[torch.triu(torch.ones(len(copies.values), len(copies.values)), 1) > 0]
    assert 0 < int(pairs.sum()) < 0.6 * len(pairs)
    matrix = matrices(copies)
    assert (matrix - matrix.round()).abs().amax((1, 2)).min() > 0.03, "none carries samples onto samples"
    if group in ("o2", "o3"):
        assert int((torch.linalg.det(matrix) < 0).sum()) * 2 == len(matrix)
    if group == "scale":
        scales = copies.values[:, 0].log2().numpy()
        steps = np.subtract.outer(scales, scales)[np.triu_indices(len(scales), 1)] / 0.5
        assert (pairs.numpy() == np.isclose(steps, np.round(steps), atol=1e-9)).all()


def test_networks_of_one_set_are_compared_on_the_same_copies():
    """A plain network on those of its data, one that is equivariant by a little on little ones."""
    one, *others = (copies_of(trained(*case)).values for case in (("so2", 8), ("none", 1), ("so2", 12)))
    assert all(torch.equal(one, other) for other in others)
    little = torch.rad2deg(copies_of(trained("so2", 3, max_angle=27)).values).abs()
    assert 2 < float(little.min()) < float(little.max()) <= 20
    scaled = trained("none", transformation="scaled")
    assert transforms_of(scaled).axis == copies_of(scaled).axis == "scale", "a plain network as its data are"


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
