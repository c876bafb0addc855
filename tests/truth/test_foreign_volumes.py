"""Masks of volumes that are not like the training volumes: other voxels, other axes, no place in the world."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
import torch
from scipy.ndimage import map_coordinates

from liespline.lab import load
from truth.conftest import cells
from truth.road import Road, liespline, normalised


def wanted(road: Road, scan: np.ndarray, spacing: tuple[float, ...]) -> np.ndarray:
    """The mask on the scan's own voxels, each taking the class of the nearest of the cubes of 1 mm that SciPy made."""
    sizes = [round(n * s) for n, s in zip(scan.shape, spacing, strict=True)]
    places = [
        ((np.arange(size) - (size - 1) / 2) / s + (n - 1) / 2).clip(0, n - 1)
        for size, n, s in zip(sizes, scan.shape, spacing, strict=True)
    ]
    fine = map_coordinates(normalised(scan[None])[0], np.meshgrid(*places, indexing="ij"), order=1)
    with torch.no_grad():
        answer = load(road.run).in_tiles(torch.from_numpy(fine)[None, None].float())[0].argmax(0).numpy()
    back = [
        np.floor((np.arange(n) - (n - 1) / 2) * s + (size - 1) / 2 + 0.5).astype(int).clip(0, size - 1)
        for size, n, s in zip(sizes, scan.shape, spacing, strict=True)
    ]
    return answer[np.ix_(*back)]


@pytest.fixture
def scan() -> np.ndarray:
    image, _ = cells(np.random.default_rng(11), (9, 11, 7), SPACING)
    return image


SPACING = (2.0, 1.5, 3.0)
AXES = {"as trained": "RAS", "from the left": "LPS", "axes in another order": "SRA"}


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
def test_a_mask_lies_on_the_voxels_of_its_scan(scans, scan, axes, tmp_path):
    """The file may store its axes in any order and direction; the mask comes in the same."""
    upright = nibabel.Nifti1Image(scan, np.diag([*SPACING, 1.0]) + np.eye(4, k=3) * 17)
    turn = nibabel.orientations.ornt_transform(
        nibabel.io_orientation(upright.affine), nibabel.orientations.axcodes2ornt(axes)
    )
    stored = upright.as_reoriented(turn)
    nibabel.save(stored, tmp_path / "new.nii.gz")
    liespline("predict", scans.run, tmp_path / "new.nii.gz", "--out", tmp_path / "out")
    found = nibabel.load(tmp_path / "out" / "new.nii.gz")
    assert np.allclose(found.affine, stored.affine)
    assert nibabel.aff2axcodes(found.affine) == tuple(axes)
    mask = np.asarray(nibabel.as_closest_canonical(found).dataobj)
    assert set(np.unique(mask)) >= {0, 1}
    assert (mask == wanted(scans, scan, SPACING)).mean() > 0.99


def test_an_array_says_its_spacing_and_so_does_its_mask(scans, scan, tmp_path):
    np.savez(tmp_path / "new.npz", volume=scan, spacing=np.array(SPACING))
    liespline("predict", scans.run, tmp_path / "new.npz", "--out", tmp_path / "out")
    found = nibabel.load(tmp_path / "out" / "new.nii.gz")
    assert found.header.get_zooms() == pytest.approx(SPACING)
    assert found.header.get_xyzt_units()[0] == "mm"
    assert found.shape == scan.shape
    assert (np.asarray(found.dataobj) == wanted(scans, scan, SPACING)).mean() > 0.99


def test_a_scan_of_the_voxels_of_training_is_not_touched(scans, scan, tmp_path):
    nibabel.save(nibabel.Nifti1Image(scan, np.eye(4)), tmp_path / "new.nii")
    liespline("predict", scans.run, tmp_path / "new.nii", "--out", tmp_path / "out")
    with torch.no_grad():
        answer = load(scans.run).in_tiles(torch.from_numpy(normalised(scan[None]))[None])[0].argmax(0).numpy()
    assert np.array_equal(np.asarray(nibabel.load(tmp_path / "out" / "new.nii.gz").dataobj), answer)
