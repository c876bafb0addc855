"""Scans stored in other orders of axes: with a header that says so, and with one that does not."""

import itertools

import nibabel
import numpy as np
import pytest
from nibabel.orientations import apply_orientation

from truth.road import ended, liespline

SIDE = 12
TINY = "--set widths=2,3 --set kernel_size=3 --accelerator cpu --quiet --lr 0.05 --batch-size 4 --patch 12".split()
ORDERS = [
    np.array(list(zip(order, signs, strict=True)))
    for order in itertools.permutations(range(3))
    for signs in itertools.product((1, -1), repeat=3)
]
"""All 48, as nibabel writes them: for each axis where it goes, and whether it is reversed."""


def is_rotation(order):
    matrix = np.zeros((3, 3))
    matrix[np.arange(3), order[:, 0]] = order[:, 1]
    return np.linalg.det(matrix) > 0


def scan(path, draw):
    """Two blocks of unlike sides, one brighter than the other, in noise; voxels are cubes of 1 mm."""
    mask = np.zeros((SIDE,) * 3, np.uint8)
    for value in (1, 2):
        low = draw.integers(1, 5, 3)
        mask[tuple(slice(at, at + side) for at, side in zip(low, (3, 4, 6), strict=True))] = value
    values = 100.0 * mask + draw.normal(500, 20, mask.shape)
    for part, array in (("images", values.astype(np.float32)), ("masks", mask)):
        (path / part).mkdir(parents=True, exist_ok=True)
        name = f"{len(list((path / part).iterdir()))}.nii.gz"
        nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), path / part / name)


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    root, draw = tmp_path_factory.mktemp("scans"), np.random.default_rng(0)
    for _ in range(9):
        scan(root, draw)
    return root


def masks_of(scans, out, group, orders, header):
    """What a trained network finds in a scan, and in all its copies; a header that is kept is wrong for them."""
    liespline("train", "segment", "--data", scans, "--out", out / "run", *group, *TINY, "--epochs", 4)
    image = nibabel.load(scans / "images" / "0.nii.gz")
    (out / "files").mkdir()
    for number, order in enumerate(orders):
        moved = image.as_reoriented(order)
        affine = moved.affine if header else image.affine
        nibabel.save(nibabel.Nifti1Image(np.asarray(moved.dataobj), affine), out / "files" / f"{number:02}.nii.gz")
    ended(0, "predict", out / "run", out / "files", "--out", out / "masks")
    return [np.asarray(nibabel.load(out / "masks" / f"{n:02}.nii.gz").dataobj) for n in range(len(orders))]


def test_a_header_that_says_so_changes_nothing(scans, tmp_path):
    """All 48 orders, any network: volumes are read with their axes right, forward and up, masks written as stored."""
    found = masks_of(scans, tmp_path, ("--group", "none"), ORDERS, header=True)
    assert len(np.unique(found[0])) > 1
    assert all(np.array_equal(mask, apply_orientation(found[0], to)) for mask, to in zip(found, ORDERS, strict=True))


def test_a_wrong_header_changes_nothing_for_the_rotations_of_the_cube(scans, tmp_path):
    """All 24, without interpolation; a plain network finds something else in its rotated copies."""
    rotations = [order for order in ORDERS if is_rotation(order)]
    assert len(rotations) == 24
    group = ("--group", "so3", "--elements", 24, "--kernel", "pointwise", "--set", "activation=silu")
    shares = {}
    for name, how in (("so3", group), ("none", ("--group", "none"))):
        (tmp_path / name).mkdir()
        found = masks_of(scans, tmp_path / name, how, rotations, header=False)
        assert len(np.unique(found[0])) > 1, "something is found"
        expected = [apply_orientation(found[0], order) for order in rotations]
        shares[name] = max(np.mean(mask != own) for mask, own in zip(found, expected, strict=True))
    assert shares["so3"] <= 1 / SIDE**3, "one voxel, by rounding"
    assert shares["none"] > 0.002
