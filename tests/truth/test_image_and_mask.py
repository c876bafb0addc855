"""Every augmentation of a segmentation carries the mask along with its image, in 2-D and 3-D, on images of any shape.

The channels of the images are the coordinates of their pixels, so each pixel of the result says where it comes from.
"""

import numpy as np
import pytest
import torch
from scipy import ndimage

from liespline import SO2
from liespline.lab.data.augment import Draws
from liespline.lab.data.samples import IGNORE
from liespline.lab.tasks import find_task
from liespline.lab.transforms import moved, resampled, rotations

SPACES = [(21, 21), (20, 30), (12, 13, 16), (13, 13, 13)]
SEGMENT = find_task("segment")
NAMES = ("none", "rotate", "flip", "rotate+flip", "zoom-shear", "affine", "rotate-z", "mirror")  # those that are linear
CASES = [
    (name, space)
    for name in NAMES
    for space in SPACES
    if not (name == "rotate-z" and len(space) == 2) and not (name == "mirror" and len(space) == 3)
]
COUNT = 24


def pixel_places(space) -> np.ndarray:
    """Coordinates of the pixels from the middle: (d, *space)."""
    return np.stack(np.meshgrid(*[np.arange(n) - (n - 1) / 2 for n in space], indexing="ij"))


def augmented(name: str, space, channels: np.ndarray, mask: np.ndarray):
    """A batch of copies of one image and mask after the augmentation of this name, and the matrices it drew."""
    module = SEGMENT.augmentation(SEGMENT.defaults.updated(augment=name))
    images = torch.from_numpy(np.broadcast_to(channels, (COUNT, *channels.shape)).astype(np.float32).copy())
    masks = torch.from_numpy(np.broadcast_to(mask, (COUNT, *mask.shape)).astype(np.int64).copy())
    drawn = module.matrices(images, Draws(torch.Generator().manual_seed(0))).double().numpy()
    images, masks = module(images, masks, Draws(torch.Generator().manual_seed(0)))
    return images.numpy(), masks.numpy(), drawn


@pytest.mark.parametrize(("name", "space"), CASES)
def test_the_mask_comes_from_where_the_image_comes_from(name, space):
    places, draw = pixel_places(space), np.random.default_rng(0)
    mask = draw.integers(0, 3, space)
    mask[draw.random(space) < 0.1] = IGNORE
    images, masks, matrices = augmented(name, space, places, mask)
    half = np.array(space).reshape(-1, *(1,) * len(space)) / 2
    middle = (np.abs(places) < 3).all(0)
    for source, found, matrix in zip(images, masks, matrices, strict=True):
        at = np.tensordot(matrix, places, 1)
        # torch's cubic interpolation does not keep lines straight, nor do splines that end at the border.
        assert np.abs(at - source)[:, middle].max() < 0.25
        rows, beyond = at + half - 0.5, (np.abs(at) - half).max(0)
        between = (np.abs(rows - np.floor(rows) - 0.5) < 1e-3).any(0)
        sure = ~between & (np.abs(beyond) > 1e-3)
        index = tuple(np.rint(rows).astype(int).clip(0, np.array(space).reshape(half.shape) - 1))
        wanted = np.where(beyond > 0, IGNORE, mask[index])
        assert np.array_equal(found[sure], wanted[sure])
        assert sure.mean() > 0.9
    if not any(word in name for word in ("zoom", "shear", "affine")):
        assert np.allclose([m @ m.T for m in matrices], np.eye(len(space)), atol=1e-5), "pixels stay square"
        assert {round(float(np.linalg.det(m))) for m in matrices} == (
            {1, -1} if name.endswith(("flip", "mirror")) else {1}
        )
    still = [np.allclose(m, np.eye(len(space)), atol=1e-3) for m in matrices]
    assert all(still) == (name == "none")


@pytest.mark.parametrize("space", SPACES)
def test_images_are_moved_as_scipy_moves_them(space):
    """f(Ax + b) about the middle of images that are not square, between pixels and by whole ones."""
    draw, d = np.random.default_rng(1), len(space)
    image = draw.random(space)
    matrix, offset = np.eye(d) + 0.3 * draw.normal(size=(d, d)), draw.normal(size=d)
    middle = (np.array(space) - 1) / 2
    start = middle + offset - matrix @ middle
    wanted = ndimage.affine_transform(image, matrix, start, order=1, mode="grid-constant")
    found = resampled(
        torch.from_numpy(image)[None, None], torch.from_numpy(matrix)[None], offset=torch.from_numpy(offset)[None]
    )
    assert np.allclose(found[0, 0], wanted, atol=1e-6)
    smaller = tuple(n - 4 for n in space)
    cut = tuple(slice(2, n - 2) for n in space)
    found = resampled(torch.from_numpy(image)[None, None], torch.from_numpy(matrix)[None], smaller)
    wanted = ndimage.affine_transform(image, matrix, middle - matrix @ middle, order=1, mode="grid-constant")[cut]
    assert np.allclose(found[0, 0], wanted, atol=1e-6)


def test_a_quarter_turn_of_an_image_that_is_not_square():
    """Counter-clockwise, as rot90 turns its middle square; so do the spline and the group's own element."""
    x = torch.rand(1, 1, 20, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wanted = torch.rot90(x[..., 5:25], 1, (-2, -1))
    angle = torch.tensor([torch.pi / 2], dtype=torch.float64)
    assert torch.allclose(resampled(x, rotations(angle))[..., 5:25], wanted, atol=1e-6)
    assert torch.allclose(moved(x, SO2(), angle)[..., 5:25], wanted, atol=1e-6)
