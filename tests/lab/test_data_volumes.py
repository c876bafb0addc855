"""Volumes in MedMNIST's layout: what is read, and what is refused before training."""

from pathlib import Path

import numpy as np
import pytest

from lab.damaged import Bomb
from lab.small_runs import problems
from liespline.lab.data import DataError, volumes

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
