"""Volumes in MedMNIST's layout: what is read, and what is refused before training."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

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


@pytest.mark.parametrize("channels", [0, 2])
def test_volumes_lie_in_the_middle_of_a_box(tmp_path, channels):
    """Against numpy.pad: two more on each side of the first axis, one less in all of the second, the last as it is."""
    images = VOLUMES["train_images"] // 2 + 5
    images = np.stack([images, 255 - images], -1) if channels else images
    others = {f"{name}_images": np.zeros((1, *images.shape[1:]), np.uint8) for name in ("val", "test")}
    few = {f"{name}_labels": VOLUMES[f"{name}_labels"][:1] for name in ("val", "test")}
    data = volumes.load(archive(tmp_path / "v.npz", train_images=images, **others, **few), "train", (10, 6, 8))
    batch, _ = data.__getitems__(range(len(data)))
    first = np.moveaxis(images, -1, 1) if channels else images[:, None]
    lowest = first.min((2, 3, 4), keepdims=True)
    expected = np.pad((first - lowest)[:, :, :, :6], [(0, 0), (0, 0), (2, 2), (0, 0), (0, 0)]) + lowest
    assert np.array_equal(batch.numpy(), expected)
    assert data.space == (10, 6, 8)
    count = len(images)
    assert data.notes == (
        f"{count} of {count} volumes are smaller than 10×6×8: around them is their lowest value",
        f"{count} of {count} volumes are larger than 10×6×8: only their middle is seen",
    )


class Harm:
    """Unpickling this would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def rewritten(path: Path, key: str, raw: bytes) -> None:
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    members[f"{key}.npy"] = raw
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)


def npy(shape, dtype: str, body: bytes, fortran: bool = False) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": fortran, "shape": shape})
    return stream.getvalue() + body


def pickled(path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([Harm(path.parent / "harm")], object), allow_pickle=True)
    rewritten(path, "train_labels", stream.getvalue())


def cut_archive(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-300])


def flipped(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[300:340] = bytes(40)
    path.write_bytes(raw)


NINE = np.zeros((9, 1), np.uint8)
BAD = VOLUMES["train_images"].astype(np.float32)
BAD[7, 0, 0, 0] = np.nan
NPZ_FAULTS = {
    "pickle": (pickled, r"train_labels holds pickled objects"),
    "missing array": (lambda p: archive(p, val_labels=None), r"has no array 'val_labels'", "valid"),
    "lengths differ": (
        lambda p: archive(p, train_labels=NINE[:8]),
        r"train_labels is uint8 \(8, 1\); expected .*\(9, 1\)",
    ),
    "one class": (lambda p: archive(p, train_labels=NINE), r"one class only \(\[0\]\)"),
    "unknown class": (
        lambda p: archive(p, val_labels=np.array([[0], [1], [7], [2]])),
        r"val_labels row 2: class 7 does not occur",
        "valid",
    ),
    "float labels": (lambda p: archive(p, train_labels=NINE.astype(float)), r"train_labels is float64"),
    "flat images": (
        lambda p: archive(p, train_images=np.zeros((9, 28, 28, 3), np.uint8)),
        r"\(9, 28, 28, 3\); expected vol",
    ),
    "no images": (lambda p: archive(p, train_images=np.zeros((0, 6, 7, 8), np.uint8)), r"no volumes at all"),
    "64-bit images": (
        lambda p: archive(p, train_images=np.zeros((9, 6, 7, 8))),
        r"dtype float64; expected uint8",
    ),
    "not finite": (
        lambda p: archive(p, train_images=BAD),
        r"train_images row 7: has values that are not finite",
    ),
    "a billion rows": (
        lambda p: rewritten(p, "train_images", npy((10**9, 6, 7, 8), "|u1", b"")),
        r"declares train_images of shape \(1000000000, 6, 7, 8\)",
    ),
    "body too short": (
        lambda p: rewritten(p, "train_images", npy((9, 6, 7, 8), "|u1", bytes(99))),
        r"train_images from row 0: ends too early",
    ),
    "Fortran order": (
        lambda p: rewritten(p, "train_images", npy((9, 6, 7, 8), "|u1", bytes(9 * 336), fortran=True)),
        r"Fortran order",
    ),
    "no array": (lambda p: rewritten(p, "train_images", b"\x80\x04N."), r"train_images is no NumPy array"),
    "code in a header": (
        lambda p: rewritten(p, "train_images", b"\x93NUMPY\x01\x00\x20\x00" + b"__import__('os').getcwd()".ljust(32)),
        r"train_images is no NumPy array",
    ),
    "truncated": (cut_archive, r"no readable \.npz"),
    "flipped bits": (flipped, r"train_images"),
    "no zip": (lambda p: p.write_bytes(b"PK" + bytes(99)), r"no readable \.npz"),
    "missing": (lambda p: p.unlink(), r"does not exist"),
}


@pytest.mark.parametrize("fault", NPZ_FAULTS)
def test_faulty_archives_are_refused(tmp_path, fault):
    plant, message, *split = NPZ_FAULTS[fault]
    path = archive(tmp_path / "v.npz")
    plant(path)
    with pytest.raises(DataError, match=message):
        volumes.load(path, split[0] if split else "train")
    assert problems("volumes", path)
    assert not (tmp_path / "harm").exists(), "no code from a file is run"
