"""Random transforms of training images: uniform, and of their kind; `truth` shows that images and masks follow them."""

import numpy as np
import pytest
import torch
from scipy import stats

from liespline.lab.data.augment import Augmentation, Draws, words_of


def matrices(name, d):
    """The matrices A of 3,000 images f(Ax)."""
    images = torch.zeros(3000, 1, *(4,) * d)
    return Augmentation(words_of(name)).matrices(images, Draws(torch.Generator().manual_seed(0))).double()


def uniform(values):
    """Whether numbers spread evenly over [0, 1)."""
    return stats.kstest(values.numpy(), "uniform").pvalue > 0.01


def turned(found):
    """By which part of the circle the first axis is turned in the first plane."""
    return torch.atan2(found[:, 1, 0], found[:, 0, 0]) / (2 * torch.pi) % 1


def test_turns_are_uniform_on_the_whole_circle():
    assert uniform(turned(matrices("rotate", 2)))


def test_turns_of_volumes_are_uniform_on_all_rotations():
    found = matrices("rotate", 3)
    cosine = ((found.diagonal(dim1=-2, dim2=-1).sum(-1) - 1) / 2).clamp(-1, 1)
    # Haar measure: the angle of a rotation has density (1 − cos θ) / π, and a point goes everywhere alike.
    assert stats.kstest(torch.acos(cosine).numpy(), lambda t: (t - np.sin(t)) / np.pi).pvalue > 0.01
    assert all(uniform((found[:, axis, 0] + 1) / 2) for axis in range(3))  # Archimedes


@pytest.mark.parametrize("d", [2, 3])
def test_every_one_is_of_its_kind(d):
    found = {name: matrices(name, d) for name in ("rotate", "rotate+flip", "affine", "zoom-shear")}
    for kind in ("rotate", "rotate+flip"):
        assert (found[kind] @ found[kind].mT - torch.eye(d)).abs().max() < 1e-5, kind
    mirrored = {kind: (torch.linalg.det(m) < 0).double().mean().item() for kind, m in found.items()}
    assert mirrored["rotate"] == mirrored["affine"] == 0
    assert 0.45 < mirrored["rotate+flip"] < 0.55
    sizes = torch.linalg.det(found["affine"]) ** (-1 / d)
    assert uniform((sizes - 0.9) / 0.2)
    stretch = torch.linalg.svdvals(found["affine"])
    # A shear by k has the singular values √(1 + k²/4) ± k/2: a ratio of about 1 + k.
    assert 1.1 < (stretch[:, 0] / stretch[:, -1]).max() < 1.11
    upright = found["zoom-shear"] / found["zoom-shear"][:, :1, :1]
    assert uniform((upright[:, 0, 1] + 0.1) / 0.2)
    upright[:, 0, 1] = 0
    assert (upright - torch.eye(d)).abs().max() < 1e-6, "an upright slant never turns"


def test_what_stands_upright_spins_about_its_last_axis():
    found = matrices("rotate-z+zoom-shear", 3)
    assert found[:, 2, :2].abs().max() == found[:, :2, 2].abs().max() == 0
    assert uniform((1 / found[:, 2, 2] - 0.9) / 0.2)
    assert uniform(turned(found))
    assert (found[:, :2, 0].norm(dim=-1) / found[:, 2, 2] - 1).abs().max() < 1e-6, "as large around as high"


def test_half_of_all_photographs_are_mirrored_left_to_right_after_their_slant():
    slanted, found = matrices("zoom-shear", 2), matrices("mirror+zoom-shear", 2)
    assert torch.equal(found[:, :, 0], slanted[:, :, 0])
    signs = found[:, 1, 1] / slanted[:, 1, 1]
    assert torch.equal(found[:, :, 1], signs.unsqueeze(1) * slanted[:, :, 1])
    assert set(signs.tolist()) == {1, -1}
    assert 0.45 < (signs < 0).double().mean() < 0.55
