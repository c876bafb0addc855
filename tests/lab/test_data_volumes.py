"""Volumes from arrays and files: what is read, centred, resampled, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
import torch

from lab.damaged import Bomb
from lab.data_files import CT, blob, blob_dicom, blob_nifti, places
from lab.small_runs import problems
from liespline.lab.data import DataError, volumes
from liespline.lab.data.scans import Reading
from liespline.lab.data.volumes import centred
from liespline.lab.tasks.volumes import load_scans

RNG = np.random.default_rng(0)
VOLUMES = {
    f"{split}_{what}": array
    for split, count in (("train", 9), ("val", 4), ("test", 5))
    for what, array in (
        ("images", RNG.integers(0, 256, (count, 6, 7, 8), np.uint8)),
        ("labels", np.arange(count, dtype=np.uint8).reshape(-1, 1) % 3),
    )
}


def archive(path: Path, **changes) -> Path:
    np.savez_compressed(path, **{key: value for key, value in (VOLUMES | changes).items() if value is not None})
    return path


@pytest.mark.parametrize("channels", [0, 2])
def test_volumes(tmp_path, channels):
    changes = {}
    if channels:
        changes = {k: np.stack([v, 255 - v], -1) for k, v in VOLUMES.items() if k.endswith("images")}
    path = archive(tmp_path / "v.npz", **changes)
    assert problems("volumes", path) == []
    for split, name in (("train", "train"), ("valid", "val"), ("test", "test")):
        data = volumes.load(path, split)
        batch, labels = data.__getitems__(range(len(data)))
        expected = (VOLUMES | changes)[f"{name}_images"]
        expected = np.moveaxis(expected, -1, 1) if channels else expected[:, None]
        assert np.array_equal(batch.numpy(), expected)
        assert labels.tolist() == VOLUMES[f"{name}_labels"][:, 0].tolist()
        assert (data.classes, data.space) == (("0", "1", "2"), (6, 7, 8))
    other = archive(path, test_images=VOLUMES["test_images"] // 2)
    assert volumes.load(other, "test")[1][0].max() < 128, "a replaced file is read anew"


def test_volumes_lie_in_the_middle_of_a_box(tmp_path):
    """Against numpy.pad: two more on each side of the first axis, one less in all of the second, the last as it is."""
    images = VOLUMES["train_images"] // 2 + 5
    images = np.stack([images, 255 - images], -1)
    others = {f"{name}_images": np.zeros((1, *images.shape[1:]), np.uint8) for name in ("val", "test")}
    few = {f"{name}_labels": VOLUMES[f"{name}_labels"][:1] for name in ("val", "test")}
    data = volumes.load(archive(tmp_path / "v.npz", train_images=images, **others, **few), "train", (10, 6, 8))
    batch, _ = data.__getitems__(range(len(data)))
    first = np.moveaxis(images, -1, 1)
    lowest = first.min((2, 3, 4), keepdims=True)
    expected = np.pad((first - lowest)[:, :, :, :6], [(0, 0), (0, 0), (2, 2), (0, 0), (0, 0)]) + lowest
    assert np.array_equal(batch.numpy(), expected)
    assert data.space == (10, 6, 8)
    count = len(images)
    assert data.notes == (
        f"{count} of {count} volumes are smaller than 10×6×8: around them is their lowest value",
        f"{count} of {count} volumes are larger than 10×6×8: only their middle is seen",
    )


NINE = np.zeros((9, 1), np.uint8)
BAD = VOLUMES["train_images"].astype(np.float32)
BAD[7, 0, 0, 0] = np.nan
CHANGES = {
    "missing array": ({"train_labels": None}, r"has no array 'train_labels'"),
    "lengths differ": ({"train_labels": np.arange(8) % 2}, r"has 9 volumes and 8 labels"),
    "one class": ({"train_labels": NINE}, r"one class only \(\[0\]\)"),
    "float labels": ({"train_labels": NINE.astype(float)}, r"train_labels is float64"),
    "flat images": (
        {"train_images": np.zeros((9, 28, 28, 3), np.uint8)},
        r"has shape \(28, 28, 3\); expected \(D, H, W\)",
    ),
    "64-bit images": ({"train_images": np.zeros((9, 6, 7, 8))}, r"dtype float64; expected uint8"),
    "not finite": ({"train_images": BAD}, r"train_images row 7: has values that are not finite"),
    "unknown class": ({"val_labels": np.array([[0], [1], [7], [2]])}, r"val_labels row 2: class 7 does not occur"),
}


@pytest.mark.parametrize("fault", CHANGES)
def test_faulty_archives_are_refused(tmp_path, fault):
    changes, says = CHANGES[fault]
    path = archive(tmp_path / "v.npz", **changes)
    with pytest.raises(DataError, match=says):
        volumes.load(path, "valid" if fault == "unknown class" else "train")
    assert problems("volumes", path)


def test_objects_are_not_unpickled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    harm = np.array([Bomb()], object)
    np.savez(tmp_path / "v.npz", **VOLUMES | {"train_labels": harm})
    np.save(tmp_path / "v.npy", harm, allow_pickle=True)
    for name in ("v.npz", "v.npy"):
        with pytest.raises(DataError, match=r"Object arrays|Python objects|train_labels"):
            list(volumes.read_volumes(tmp_path / name)) if name == "v.npy" else volumes.load(tmp_path / name, "train")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v.npy", "v.npz"], "no code from a file is run"


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
