"""What a network sees of scans: the same blob, whoever wrote it."""

import numpy as np
import pytest
import torch

from lab.blob_scans import CT, blob, blob_dicom, blob_nifti, places
from liespline.lab.data.scans import Reading
from liespline.lab.data.volumes import centred
from liespline.lab.tasks.volumes import load_scans

DRAW = np.random.default_rng(0)


def four_ways(root):
    """The same blob, 24 mm wide in all directions, as four scanners write it; and as it should come out on 1.5 mm."""
    (root / "one").mkdir(parents=True)
    (root / "two").mkdir()
    flat = np.diag([0.75, 0.75, 3.0, 1.0])
    mixed = np.array([[0, 0, -2.0, 5], [-1.0, 0, 0, 7], [0, 1.5, 0, 0], [0, 0, 0, 1]])  # back, up, left
    blob_nifti(root / "one" / "flat.nii.gz", (32, 32, 8), flat)
    blob_nifti(root / "one" / "mixed.nii", (24, 16, 12), mixed, np.float32)
    blob_dicom(root / "two" / "ct", (24, 32, 12), 2.0, (1.0, 0.75))
    cubes = np.diag([1.5, 1.5, 1.5, 1.0])
    truth = blob(places((16, 16, 16), cubes))
    np.savez(root / "two" / "cubes.npz", volume=truth.astype(np.float32), spacing=[1.5] * 3)
    return (truth - CT[0]) / (CT[1] - CT[0])


def test_one_blob_from_four_scanners_is_one_volume(tmp_path):
    truth = four_ways(tmp_path / "scans")
    found = load_scans(tmp_path / "scans", "all", Reading(CT, 1.5))
    assert (found.space, found.in_channels, found.side) == ((16, 16, 16), 1, 1.5)
    images, _ = found.__getitems__(range(4))
    assert images.dtype == torch.float32
    inside = (slice(2, -2),) * 3  # the edge of a coarse scan says nothing beyond its last slice
    for name, image in zip(found.names, images, strict=True):
        apart = np.abs(image[0].numpy() - truth)[inside].max()
        assert apart < (1e-4 if "cubes" in name else 0.06), name
    # The other way round the blob would be elsewhere.
    assert np.abs(truth - truth[::-1])[inside].max() > 0.3


def test_without_a_window_units_do_not_matter(tmp_path):
    for i, (slope, shift) in enumerate([(1, 0), (0.01, 5), (40, -3000)]):
        (tmp_path / "s" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        values = blob(places((12, 12, 12), np.eye(4))) * slope + shift
        np.save(tmp_path / "s" / "ab"[i % 2] / f"{i}.npy", values.astype(np.float32))
    images, _ = load_scans(tmp_path / "s", "all").__getitems__(range(3))
    assert torch.allclose(images[0], images[1], atol=1e-3)
    assert torch.allclose(images[0], images[2], atol=1e-3)
    assert abs(float(images.mean())) < 1e-3


def test_the_usual_voxel_keeps_its_volume(tmp_path):
    four_ways(tmp_path / "scans")
    side = load_scans(tmp_path / "scans", "all").side
    # Right, forward and up: (0.75, 0.75, 3), (2, 1, 1.5), (0.75, 1, 2) and (1.5, 1.5, 1.5) mm.
    assert side == pytest.approx((1.125 * 1.0 * 1.75) ** (1 / 3), abs=1e-3)


@pytest.mark.parametrize("space", [(8, 8, 8), (5, 9, 4), (3, 3, 3), (6, 5, 8)])
def test_the_middle_stays_in_the_middle(space):
    values = DRAW.normal(size=(2, 5, 6, 7)).astype(np.float32)
    found = centred(values, space)
    for channel, low in zip(range(2), values.min((1, 2, 3)), strict=True):
        wanted = values[channel]
        for axis, (own, side) in enumerate(zip(wanted.shape, space, strict=True)):
            if side > own:
                widths = [(0, 0)] * 3
                widths[axis] = ((side - own) // 2, side - own - (side - own) // 2)
                wanted = np.pad(wanted, widths, constant_values=low)
            else:
                wanted = np.take(wanted, np.arange(side) + (own - side) // 2, axis)
        assert np.array_equal(found[channel], wanted)
