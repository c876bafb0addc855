"""Random transforms of training images: uniform, about the centre, of their kind."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from liespline.lab.data.augment import Augmentation, Draws, words_of

ROTATE = Augmentation({"rotate"})


def spot(side, centre, d):
    """A Gaussian at a place measured from the centre: (1, 1, side, …)."""
    axes = [torch.arange(side) - (side - 1) / 2] * d
    place = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)
    return torch.exp(-(place - torch.tensor(centre)).square().sum(-1) / 2)[None, None]


def centres(images):
    """Where the light of each image lies, from the centre: (B, C, d)."""
    space = images.shape[2:]
    axes = [torch.arange(n) - (n - 1) / 2 for n in space]
    place = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flatten(0, -2)
    light = images.flatten(2)
    return (light @ place) / light.sum(-1, keepdim=True)


def test_turns_are_uniform_on_the_whole_circle_about_the_centre():
    images = spot(24, (4.0, 0.0), 2).expand(3000, 1, 24, 24)  # an even side: the centre is between samples
    out, _ = ROTATE(images, torch.zeros(3000), Draws(torch.Generator().manual_seed(0)))
    found = centres(out)[:, 0]
    assert found.norm(dim=-1) == pytest.approx(4.0, abs=0.1)
    angles = torch.atan2(found[:, 1], found[:, 0]).numpy() / (2 * np.pi) + 0.5
    assert stats.kstest(angles, "uniform").pvalue > 0.01


def test_turns_of_volumes_are_uniform_on_all_rotations():
    pair = torch.cat([spot(11, (3.0, 0.0, 0.0), 3), spot(11, (0.0, 3.0, 0.0), 3)], 1)
    images = pair.expand(1500, 2, 11, 11, 11)
    out, _ = ROTATE(images, torch.zeros(1500), Draws(torch.Generator().manual_seed(0)))
    first, second = nn.functional.normalize(centres(out), dim=-1).unbind(1)
    assert (first * second).sum(-1).abs().max() < 0.1, "rigid"
    matrices = torch.stack([first, second, torch.linalg.cross(first, second)], -1)
    cosine = ((matrices.diagonal(dim1=-2, dim2=-1).sum(-1) - 1) / 2).clamp(-1, 1)
    angle = torch.acos(cosine).numpy()
    # Haar measure: the angle of a rotation has density (1 − cos θ) / π, and a point goes everywhere alike.
    assert stats.kstest(angle, lambda t: (t - np.sin(t)) / np.pi).pvalue > 0.01
    for axis in range(3):
        assert stats.kstest((first[:, axis].numpy() + 1) / 2, "uniform").pvalue > 0.01  # Archimedes


@pytest.mark.parametrize("d", [2, 3])
def test_every_move_is_about_the_centre_and_of_its_kind(d):
    """Spots tell the matrix that moved them: orthogonal or not, mirrored or not, its size and its slant."""
    spots = [spot(16, tuple(3.0 * (i == axis) for i in range(d)), d) for axis in range(d)]  # the centre between samples
    images = torch.cat(spots, 1).expand(200, d, *(16,) * d)
    found = {}
    for name in ("rotate", "rotate+flip", "affine", "flip"):
        move = Augmentation(words_of(name))
        out, _ = move(images, torch.zeros(200), Draws(torch.Generator().manual_seed(0)))
        found[name] = centres(out).double() / 3
    for kind in ("rotate", "rotate+flip", "flip"):
        gram = found[kind] @ found[kind].mT
        assert (gram - torch.eye(d)).abs().max() < 0.1, kind
    mirrored = {kind: (torch.linalg.det(m) < 0).double().mean().item() for kind, m in found.items()}
    assert mirrored["rotate"] == mirrored["affine"] == 0
    assert 0.4 < mirrored["rotate+flip"] < 0.6
    assert (found["flip"].abs() - torch.eye(d)).abs().max() < 1e-3, "along the axes alone"
    sizes = torch.linalg.det(found["affine"]) ** (1 / d)
    assert 0.85 < sizes.min() < 0.93
    assert 1.07 < sizes.max() < 1.15
    stretch = torch.linalg.svdvals(found["affine"])
    # A shear by k has the singular values √(1 + k²/4) ± k/2: a ratio of about 1 + k.
    assert 1.07 < (stretch[:, 0] / stretch[:, -1]).max() < 1.16


def test_an_upright_slant_never_turns():
    moved = Augmentation({"zoom-shear"}).matrices(torch.zeros(500, 1, 8, 8), Draws(torch.Generator().manual_seed(0)))
    assert torch.equal(moved[:, 1, 0], torch.zeros(500))
    assert float(moved[:, 0, 0].min()) > 1 / 1.1
    assert float((moved[:, 0, 1] / moved[:, 0, 0]).abs().max()) <= 0.1 + 1e-6


def test_what_stands_upright_spins_about_its_last_axis():
    """A mast stays on the axis and as high as its zoom says; a spot beside it goes round at its own height."""
    # Far from the rim, whose colour moves in.
    pair = torch.cat([spot(20, (0.0, 0.0, 3.0), 3), spot(20, (3.0, 0.0, -2.0), 3)], 1)
    spin, draws = Augmentation({"rotate-z", "zoom-shear"}), Draws(torch.Generator().manual_seed(0))
    out, _ = spin(pair.expand(1500, 2, 20, 20, 20), torch.zeros(1500), draws)
    mast, beside = centres(out).unbind(1)
    assert mast[:, :2].abs().max() < 0.02
    zoom = mast[:, 2] / 3
    assert 0.88 < zoom.min() < 0.92 < 1.08 < zoom.max() < 1.12
    assert (beside[:, 2] / -2 - zoom).abs().max() < 0.05
    angle = torch.atan2(beside[:, 1], beside[:, 0]).numpy() / (2 * np.pi) + 0.5
    assert stats.kstest(angle, "uniform").pvalue > 0.01
    assert (beside[:, :2].norm(dim=-1) / zoom - 3).abs().max() < 0.4, "slanted by up to 0.1"


def test_half_of_all_photographs_are_mirrored_left_to_right_after_their_slant():
    x = torch.zeros(500, 1, 9, 9)
    x[..., 4, 6] = 1.0  # right of the centre, in its row
    slanted, mirrored = (
        Augmentation(words_of(name))(x, torch.zeros(500), Draws(torch.Generator().manual_seed(0)))[0][:, 0].numpy()
        for name in ("zoom-shear", "mirror+zoom-shear")
    )
    flipped = np.abs(mirrored - slanted[..., ::-1]).max((1, 2)) < 1e-5
    kept = np.abs(mirrored - slanted).max((1, 2)) < 1e-5
    assert (flipped ^ kept).all()
    assert 200 < flipped.sum() < 300
