"""Which moves a network is tested by: the same for all that are compared, and between the elements of grids."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from liespline import SO3, repulsion
from liespline.lab.evaluation.moves import copies_of, moves_of
from liespline.lab.evaluation.output_change import on_grid
from liespline.lab.runs.trained import Trained
from liespline.lab.settings import Config
from liespline.lab.tasks.grids import make_grid
from liespline.lab.tasks.networks import Signature


def test_every_network_is_turned_to_the_same_angles_and_between_its_own():
    """Networks of several groups compare only where the same images come to them."""
    found = {}
    for group in ("so2", "o2", "none"):
        config = Config("images").updated(group=group, elements=1 if group == "none" else 12)
        moves = moves_of(Trained(nn.Linear(1, 1), config, Signature(1, (9, 9), ("a", "b"))))
        matrix = moves.group.matrix(moves.elements)
        turns = matrix[torch.linalg.det(matrix) > 0]
        angles = torch.rad2deg(torch.atan2(turns[:, 1, 0], turns[:, 0, 0])) % 360
        found[group] = sorted(angles.round(decimals=6).tolist())
        named = [float(label.split("°")[0]) for label in moves.labels[: len(turns)]]
        assert np.allclose(named, angles.round(decimals=6)), "a label says what was done"
    assert found["so2"] == found["o2"] == found["none"] == [15.0 * i for i in range(24)]
    for orientations in (8, 12):
        between = [abs(angle / 360 * orientations % 1 - 0.5) < 0.499 for angle in found["so2"]]
        assert sum(between) >= 12, "half of the angles or more lie between those of a grid"


def test_networks_of_one_generated_set_are_moved_alike():
    """Turned only, a network of turns would meet none of the small digits that the others are scored on."""
    found = {}
    for group, n_h in (("sim2", (8, 3)), ("so2", 16), ("none", 1)):
        config = Config("mnist").updated(moved="rotated-scaled", group=group, elements=n_h)
        moves = moves_of(Trained(nn.Linear(1, 1), config, Signature(1, (28, 28), ("a", "b"))))
        found[group] = moves.group.matrix(moves.elements)
    assert torch.equal(found["so2"], found["sim2"])
    assert torch.equal(found["none"], found["sim2"])
    assert torch.linalg.det(found["so2"]).min() == pytest.approx(0.25)


@pytest.mark.parametrize("group", ["so3", "o3", "none"])
def test_volumes_are_turned_between_the_turns_of_their_voxels(group):
    """Twelve rotations that lie evenly are those of a tetrahedron, planted as a fault: they cost nothing."""
    config = Config("volumes").updated(group=group, elements=1 if group == "none" else 24)
    moves = moves_of(Trained(nn.Linear(1, 1), config, Signature(1, (9, 9, 9), ("a", "b"))))

    def angle_to_the_voxels(turns):
        """The angle to the nearest of the 48 signed permutations of the axes."""
        orders = torch.eye(3, dtype=torch.float64)[torch.tensor(list(itertools.permutations(range(3))))]
        signs = torch.tensor(list(itertools.product((1.0, -1.0), repeat=3)), dtype=torch.float64)
        exact = (signs[:, None, :, None] * orders).flatten(0, 1)
        traces = torch.einsum("nij,mij->nm", turns, exact).amax(1)
        return torch.rad2deg(torch.arccos(((traces - 1) / 2).clamp(-1, 1)))

    turned = moves.group.matrix(moves.elements)
    angles = angle_to_the_voxels(turned[turned[:, 0, 0].abs() < 1 - 1e-9])
    assert len(angles) >= 12
    assert angles.mean() > 25
    assert angles.min() > 5
    assert angle_to_the_voxels(repulsion(SO3(), 12).elements).max() < 1e-3


def copies_and_grid(group, n_h):
    config = Config("images").updated(group=group, elements=n_h)
    space = (9,) * (3 if group in ("so3", "o3") else 2)
    copies = copies_of(Trained(nn.Linear(1, 1), config, Signature(1, space, ("a", "b"))))
    return copies, make_grid(config.network, len(space))


@pytest.mark.parametrize("orientations", [2, 4, 6, 8, 12, 16, 24])
def test_copies_lie_on_and_between_the_orientations_of_a_grid(orientations):
    """By angles alone: which differ by a multiple of the grid's step."""
    copies, grid = copies_and_grid("so2", orientations)
    angles = np.degrees(copies.elements[:, 0].numpy())
    step, off = 360 / orientations, np.abs(angles[:, None] - angles)
    on = np.isclose(off / step, np.round(off / step), atol=1e-9)
    assert (on_grid(grid, copies).numpy() == on).all()
    pairs = on[np.triu_indices(len(angles), 1)]
    assert 0 < pairs.sum() < 0.6 * len(pairs)
    assert np.abs((angles + 45) % 90 - 45).min() > 5, "no copy is a quarter turn, which costs no interpolation"


@pytest.mark.parametrize(
    ("group", "n_h"), [("o2", 8), ("sim2", (8, 3)), ("gl2", (8, 1, 3, 3)), ("scale", 4), ("so3", 24), ("o3", 24)]
)
def test_copies_of_every_group_lie_on_and_between_its_grid(group, n_h):
    copies, grid = copies_and_grid(group, n_h)
    pairs = on_grid(grid, copies)[torch.triu(torch.ones(len(copies.elements), len(copies.elements)), 1) > 0]
    assert 0 < int(pairs.sum()) < 0.6 * len(pairs)
    matrices = copies.group.matrix(copies.elements)
    assert (matrices - matrices.round()).abs().amax((1, 2)).min() > 0.03, "none carries samples onto samples"
    if group in ("o2", "o3"):
        assert int((torch.linalg.det(matrices) < 0).sum()) * 2 == len(matrices)
    if group == "scale":
        scales = copies.elements[:, 0].log2().numpy()
        steps = np.subtract.outer(scales, scales)[np.triu_indices(len(scales), 1)] / 0.5
        assert (pairs.numpy() == np.isclose(steps, np.round(steps), atol=1e-9)).all()


def test_networks_of_one_set_are_compared_on_the_same_copies():
    """A plain network on those of its data, one that is equivariant by a little on little ones."""
    some = [copies_and_grid(group, n_h)[0].elements for group, n_h in (("so2", 8), ("none", 1), ("so2", 12))]
    assert torch.equal(some[0], some[1])
    assert torch.equal(some[0], some[2])
    config = Config("images").updated(group="so2", elements=3, max_angle=27)
    little = copies_of(Trained(nn.Linear(1, 1), config, Signature(1, (9, 9), ("a", "b")))).elements
    assert float(torch.rad2deg(little).abs().max()) <= 20
    assert float(torch.rad2deg(little).abs().min()) > 2
    scaled = Config("mnist").updated(moved="scaled", group="none", elements=1)
    assert copies_of(Trained(nn.Linear(1, 1), scaled, Signature(1, (28, 28), ("a", "b")))).axis == "scale"
