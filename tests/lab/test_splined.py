"""Volumes that are moved in training: the cubic spline through their samples, as SciPy has it."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from liespline.groups import SO3
from liespline.lab.data.augment import Augmentation, Draws
from liespline.lab.transforms import moved, resampled, splined


def blobs(d, count=2, side=19):
    """Rough images with room around: what SciPy thinks lies beyond the border does not matter."""
    rng = np.random.default_rng(0)
    out = np.zeros((count, *(side + 2 * i for i in range(d))))
    out[(slice(None), *(slice(6, -6) for _ in range(d)))] = rng.random((count, *(side + 2 * i - 12 for i in range(d))))
    return out


def by_scipy(image, matrix):
    middle = (np.array(image.shape) - 1) / 2
    return ndimage.affine_transform(image, matrix, middle - matrix @ middle, order=3, mode="constant")


@pytest.mark.parametrize("d", [2, 3])
def test_they_are_scipys_cubic_splines(d):
    images = blobs(d)
    matrices = np.eye(d) + np.random.default_rng(1).normal(0, 0.25, (len(images), d, d))
    x = torch.from_numpy(images).unsqueeze(1)
    ours = splined(x, torch.from_numpy(matrices))[:, 0].numpy()
    theirs = np.stack([by_scipy(*pair) for pair in zip(images, matrices, strict=True)])
    inside = (slice(None), *(slice(3, -3) for _ in range(d)))  # beyond the samples SciPy has zeros, a spline its tail
    known = np.stack([by_scipy(np.ones_like(images[0]), m) for m in matrices])[inside] > 0.999
    assert np.abs(ours - theirs)[inside][known].max() < 1e-3
    linear = resampled(x, torch.from_numpy(matrices))[:, 0].numpy()
    assert np.abs(linear - theirs)[inside][known].max() > 0.1


def test_quarter_turns_and_no_turn_are_exact():
    x = torch.from_numpy(blobs(3)[..., :18, :18, :18]).unsqueeze(1)
    turn = torch.tensor([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]).repeat(2, 1, 1)
    assert (splined(x, torch.eye(3).repeat(2, 1, 1)) - x).abs().max() < 1e-12
    assert min((splined(x, turn) - x.rot90(k, (3, 4))).abs().max() for k in (1, 3)) < 1e-12


@pytest.mark.parametrize("kind", [{"rotate"}, {"rotate", "zoom-shear"}])
def test_volumes_stay_sharp_in_training(kind):
    """Differences from voxel to voxel, squared: linear interpolation leaves two thirds of what splines leave."""
    x = torch.from_numpy(blobs(3) > 0.5).float().unsqueeze(1)

    def rough(volumes):
        return sum(volumes.diff(dim=axis).square().mean() for axis in (2, 3, 4))

    draws = Draws(torch.Generator().manual_seed(0))
    moved = Augmentation(kind)(x, torch.zeros(2), draws)[0]
    blurred = resampled(x, Augmentation(kind).matrices(x, Draws(torch.Generator().manual_seed(0))))
    assert rough(moved) > 0.5 * rough(x)
    assert rough(moved) > 1.5 * rough(blurred)


def test_they_are_what_is_scored_up_to_the_border_and_beyond():
    """All 4³ terms of bright volumes, by the function that moves scored ones; nothing lies beyond half a voxel."""
    x = torch.rand(2, 1, 8, 9, 10, dtype=torch.float64)
    turns = SO3().exp(torch.tensor([[0.3, -0.8, 0.5], [1.0, 0.2, 2.0]], dtype=torch.float64))
    expected = torch.cat([moved(x[i : i + 1], SO3(), turns[i]) for i in range(2)])
    assert (splined(x, turns.mT) - expected).abs().max() < 1e-12
    assert splined(x, 2 * torch.eye(3).repeat(2, 1, 1))[:, :, 0].abs().max() == 0
