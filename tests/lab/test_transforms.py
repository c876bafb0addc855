"""Images and volumes transformed, in training and in tests: against SciPy, torch and the group's own action."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from liespline import SO2, SO3, Scale, uniform
from liespline.lab.data.augment import Augmentation, Draws
from liespline.lab.transforms import Scene, in_disc, in_view, moved, resampled, rim_colour, splined
from liespline.testing.moving import interior


def blob(size, centre, width=2.0):
    """A Gaussian at a point (row, column[, …]) measured from the centre."""
    axes = [torch.arange(size, dtype=torch.float64) - (size - 1) / 2] * len(centre)
    grid = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)
    away = grid - torch.as_tensor(centre, dtype=torch.float64)
    return torch.exp(-away.square().sum(-1) / (2 * width**2))[None, None]


@pytest.mark.parametrize("angle", [30, 90, 200])
@pytest.mark.parametrize("mirrored", [False, True])
def test_a_blob_goes_where_the_group_takes_its_centre(angle, mirrored):
    theta, centre = torch.tensor([math.radians(angle)], dtype=torch.float64), torch.tensor([5.0, 2.0]).double()
    there, image = blob(33, SO2().act(theta, centre)), blob(33, centre)
    assert not torch.allclose(there, image, atol=0.1)
    if mirrored:
        found, inside = Scene.mirrored(image, SO2()).copy(theta), in_view((33, 33))
        torch.testing.assert_close(found[..., inside], there[..., inside], atol=2e-3, rtol=0)
    else:
        torch.testing.assert_close(moved(image, SO2(), theta), there, atol=2e-3, rtol=0)


def test_scaling_and_rotating_in_three_dimensions():
    wide = moved(blob(33, (3.0, 1.0)), Scale(2), torch.tensor([2.0], dtype=torch.float64))
    row, column = divmod(int(wide.argmax()), 33)
    assert (row - 16, column - 16) == (6, 2)
    turn = uniform(SO3(), 24).elements[5]
    centre = torch.tensor([4.0, 2.0, 1.0]).double()
    torch.testing.assert_close(
        moved(blob(17, centre), SO3(), turn), blob(17, SO3().act(turn, centre)), atol=1e-9, rtol=0
    )


def test_what_is_shown_shrinks_with_magnification():
    whole, smaller = (interior((21, 21), Scale(2), torch.tensor([s]).double()) for s in (1.0, 0.5))
    assert 0 < int(smaller.sum()) < int(whole.sum())
    assert not bool(whole[0, 0])


def test_only_the_disc_moves():
    images = torch.rand(2, 1, 21, 21, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    inside, around = in_disc(images)
    far = torch.stack(torch.meshgrid(*[torch.arange(21.0) - 10] * 2, indexing="ij"), -1).norm(dim=-1)
    assert (inside[..., far > 10.5] == 0).all()
    assert torch.allclose((inside + around)[..., far < 9.4], images[..., far < 9.4])
    smooth, _ = in_disc(blob(21, (6.0, 2.0), 1.0))
    eighth = moved(smooth, SO2(), torch.tensor([math.pi / 4], dtype=torch.float64))
    assert float(eighth.sum()) == pytest.approx(float(smooth.sum()), rel=0.01), "nothing leaves the view"


def test_what_moves_in_has_the_colour_of_the_rim():
    images = torch.full((8, 3, 15, 15), 0.8)
    images[:, 1] = 0.6
    images[:, :, 5:10, 5:10] = 0.1
    out, _ = Augmentation({"rotate"})(images, torch.zeros(8), Draws(torch.Generator().manual_seed(1)))
    corners = out[:, :, [0, 0, -1, -1], [0, -1, 0, -1]]
    assert torch.allclose(corners[:, [0, 2]], torch.tensor(0.8), atol=1e-3)
    assert torch.allclose(corners[:, 1], torch.tensor(0.6), atol=1e-3)
    assert torch.allclose(rim_colour(images)[0, :, 0, 0], torch.tensor([0.8, 0.6, 0.8]), atol=1e-6)


@pytest.mark.parametrize("size", [(33, 33), (13, 13, 13), (100, 180)])
def test_no_black_corners_around_a_mirrored_image(size):
    """On long images too, whose corners reach farther beyond the long sides than those of a square."""
    images = torch.full((1, 1, *size), 0.7)
    group, element = (
        (SO2(), torch.tensor([1.2])) if len(size) == 2 else (SO3(), SO3().exp(torch.tensor([0.4, -0.7, 0.5])))
    )
    scene = Scene.mirrored(images, group)
    for copy in (scene.copy(element), scene.copy(element, there_and_back=True)):
        assert torch.allclose(copy, images, atol=1e-3 if len(size) == 2 else 2e-2)


# ---- volumes that are transformed in training: the cubic spline through their samples, as SciPy has it ----


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


@pytest.mark.parametrize("kind", [{"rotate"}, {"rotate", "zoom-shear"}])
def test_volumes_stay_sharp_in_training(kind):
    """Differences from voxel to voxel, squared: linear interpolation leaves two thirds of what splines leave."""
    x = torch.from_numpy(blobs(3) > 0.5).float().unsqueeze(1)

    def rough(volumes):
        return sum(volumes.diff(dim=axis).square().mean() for axis in (2, 3, 4))

    sharp = Augmentation(kind)(x, torch.zeros(2), Draws(torch.Generator().manual_seed(0)))[0]
    blurred = resampled(x, Augmentation(kind).matrices(x, Draws(torch.Generator().manual_seed(0))))
    assert rough(sharp) > 0.5 * rough(x)
    assert rough(sharp) > 1.5 * rough(blurred)


def test_they_are_what_is_scored_up_to_the_border_and_beyond():
    """All 4³ terms of bright volumes, by the function of scored ones; nothing lies beyond half a voxel."""
    x = torch.rand(2, 1, 8, 9, 10, dtype=torch.float64)
    turns = SO3().exp(torch.tensor([[0.3, -0.8, 0.5], [1.0, 0.2, 2.0]], dtype=torch.float64))
    expected = torch.cat([moved(x[i : i + 1], SO3(), turns[i]) for i in range(2)])
    assert (splined(x, turns.mT) - expected).abs().max() < 1e-12
    assert splined(x, 2 * torch.eye(3).repeat(2, 1, 1))[:, :, 0].abs().max() == 0
