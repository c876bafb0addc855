"""MNIST's files, the sets generated from them, affNIST, digits, and how images are turned."""

import gzip
import math
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import ndimage

from lab.data_files import idx, small_mnist
from liespline.lab.data import DataError, Split
from liespline.lab.tasks import find_task
from studies.data import mnist
from studies.data.matrices import Matrices, places, transformed


def test_upright_mnist_is_the_files(tmp_path):
    arrays = small_mnist(tmp_path)
    assert mnist.check(tmp_path) == []
    train, valid, test = (mnist.load(tmp_path, split, "upright") for split in ("train", "valid", "test"))
    assert [len(train), len(valid), len(test)] == [50, 10, 12]
    batch = torch.cat([train.__getitems__(range(50))[0], valid.__getitems__(range(10))[0]])
    assert np.array_equal(batch[:, 0].numpy(), arrays["train-images-idx3-ubyte"])
    assert np.array_equal(test.targets.numpy(), arrays["t10k-labels-idx1-ubyte"])
    for name in arrays:  # unpacked files do as well
        (tmp_path / name).write_bytes(gzip.decompress((tmp_path / f"{name}.gz").read_bytes()))
        (tmp_path / f"{name}.gz").unlink()
    assert np.array_equal(mnist.load(tmp_path, "test", "upright").targets.numpy(), test.targets.numpy())


def blob_mnist(path: Path, monkeypatch) -> None:
    """200 images with one bright dot right of the centre, whose place tells angle and scale."""
    monkeypatch.setattr(mnist, "_COUNTS", {"train": 60, "valid": 20, "test": 100})
    dot = np.exp(-((np.arange(28) - 13.5) ** 2) / 8)
    image = (255 * np.outer(dot, np.roll(dot, 8))).astype(np.uint8)
    for name, count in (("train", 150), ("t10k", 50)):
        labels = (np.arange(count) % 10).astype(np.uint8)
        (path / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(np.stack([image] * count))))
        (path / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))


def centres(data: Split) -> np.ndarray:
    batch = data.__getitems__(range(len(data)))[0][:, 0].double().numpy()
    axis = np.arange(28) - 13.5
    mass = batch.sum((1, 2))
    return np.stack([(batch.sum(2) * axis).sum(1), (batch.sum(1) * axis).sum(1)], -1) / mass[:, None]


@pytest.mark.parametrize("variant", ["rotated", "scaled"])
def test_generated_variants_move_the_digit_as_said(tmp_path, monkeypatch, variant):
    blob_mnist(tmp_path, monkeypatch)
    radii, angles = [], []
    for split, count in (("train", 60), ("valid", 20), ("test", 100)):
        data = mnist.load(tmp_path, split, variant)
        assert len(data) == count
        assert torch.equal(
            data.__getitems__(range(count))[0], mnist.load(tmp_path, split, variant).__getitems__(range(count))[0]
        )
        rows, columns = centres(data).T
        radii += np.hypot(rows, columns).tolist()
        angles += np.arctan2(-rows, columns).tolist()
    if variant == "rotated":
        rows, columns = centres(mnist.outside(tmp_path)).T  # as the splits are
        radii, angles = [*radii, *np.hypot(rows, columns)], [*angles, *np.arctan2(-rows, columns)]
        assert len(set(np.round(angles, 6))) == len(angles) == 200, "each has an angle of its own"
        assert np.ptp(radii) < 0.3, "turning keeps the distance from the centre"
        assert np.histogram(angles, 6, (-np.pi, np.pi))[0].min() > 12, "all angles occur"
    else:
        assert np.abs(angles).max() < 0.1, "scaling keeps the direction"
        assert min(radii) == pytest.approx(0.3 * 8, abs=0.2)
        assert max(radii) == pytest.approx(8, abs=0.3)


def test_about_its_mass_a_digit_has_no_cue(tmp_path, monkeypatch):
    """The dot, 8 pixels off the centre, comes to lie in it; turned about the image it keeps its distance."""
    blob_mnist(tmp_path, monkeypatch)
    distance = {v: np.hypot(*centres(mnist.load(tmp_path, "test", v)).T) for v in ("rotated", "rotated about mass")}
    assert distance["rotated about mass"].max() < 0.05
    assert distance["rotated"].min() > 7  # what the check above would say of the cue
    config = find_task("rotmnist").defaults.updated(data=str(tmp_path), rotation_centre="mass")
    asked = find_task("rotmnist").load(config, "test")
    assert np.hypot(*centres(asked).T).max() < 0.05


def test_generated_splits_do_not_overlap(tmp_path, monkeypatch):
    small_mnist(tmp_path, 150, 50)
    monkeypatch.setattr(mnist, "_COUNTS", {"train": 60, "valid": 20, "test": 100})
    monkeypatch.setattr(mnist, "transformed", lambda images, *moves: (images * 255).round().astype(np.uint8))
    splits = [*(mnist.load(tmp_path, split) for split in ("train", "valid", "test")), mnist.outside(tmp_path)]
    seen = [image.numpy().tobytes() for split in splits for image, _ in split]
    assert len(set(seen)) == len(seen) == 200, "what lies outside of the splits is all the rest"
    monkeypatch.undo()
    with pytest.raises(DataError, match="has 200 digits; rotated MNIST needs 62000"):
        mnist.load(tmp_path, "train")
    with pytest.raises(ValueError, match="'rotatd' is unknown"):
        mnist.load(tmp_path, "train", "rotatd")


def test_deals_share_out_the_same_digits(tmp_path, monkeypatch):
    small_mnist(tmp_path, 150, 50)
    monkeypatch.setattr(mnist, "_COUNTS", {"train": 60, "valid": 20, "test": 100})
    monkeypatch.setattr(mnist, "transformed", lambda images, *moves: (images * 255).round().astype(np.uint8))

    def digits(task: str, split: str, seed: int) -> list[bytes]:
        task = find_task(f"studies.digits:{task}")
        split = task.load(task.defaults.updated(data=str(tmp_path), seed=seed), split)
        return [image.numpy().tobytes() for image, _ in split]

    old = {split: digits("ROTMNIST", split, 3) for split in ("train", "valid", "test")}
    spare = digits("SPARE", "test", 3)
    assert digits("SPARE", "train", 3) == old["train"]
    assert len(spare) == 20
    for seed in (0, 1):
        deal = {split: digits("DEALT", split, seed) for split in old}
        together = [*deal["train"], *deal["valid"], *deal["test"]]
        assert sorted(together) == sorted([*old["train"], *old["valid"], *old["test"]])
        assert not set(together) & set(spare)
        assert [len(part) for part in deal.values()] == [60, 20, 100]
        # Of a fresh deal, 100 of 180 digits are old test digits by chance: 55.6 ± 3.3 of its 100.
        assert 40 < len(set(deal["test"]) & set(old["test"])) < 70
        assert digits("DEALT", "test", seed) == deal["test"]
    assert digits("DEALT", "test", 0) != digits("DEALT", "test", 1)


GZ = "train-images-idx3-ubyte.gz"


def packed(shape, stop=None, more=b""):
    """A file of zeros, or the beginning of one."""
    return gzip.compress((idx(np.zeros(shape, np.uint8)) + more)[:stop])


IDX_FAULTS = {
    "truncated gzip": (GZ, packed((60, 28, 28))[:-9], r"images.*cannot be unpacked"),
    "no gzip": (GZ, b"hello", r"images.*cannot be unpacked"),
    "no idx": (GZ, gzip.compress(b"hello"), r"begins with 68656c6c"),
    "short": (GZ, packed((60, 28, 28), -1), r"holds 47,039"),
    "long": (GZ, packed((60, 28, 28), more=b"x"), r"holds more"),
    "shape": (GZ, packed((60, 9, 9)), r"\(60, 9, 9\)"),
    "lengths": (GZ, packed((59, 28, 28)), r"for 59 images"),
    "a billion rows": (
        GZ, gzip.compress(b"\0\0\x08\x03" + struct.pack(">3I", 10**9, 28, 28)), r"declares shape \(1000000000, 28, 28\)"
    ),
    "label": (
        GZ.replace("images-idx3", "labels-idx1"), gzip.compress(idx(np.array([3] * 41 + [77] * 19, np.uint8))),
        r"labels.*row 41: label 77 is no digit",
    ),
    "missing": (GZ, None, r"does not exist; expected MNIST's four"),
}  # fmt: skip


@pytest.mark.parametrize("fault", IDX_FAULTS)
def test_faulty_idx_files_are_refused(tmp_path, fault):
    name, raw, message = IDX_FAULTS[fault]
    small_mnist(tmp_path)
    (tmp_path / name).unlink() if raw is None else (tmp_path / name).write_bytes(raw)
    with pytest.raises(DataError, match=message):
        mnist.load(tmp_path, "train", "upright")
    assert len(mnist.check(tmp_path)) == 1


RNG = np.random.default_rng(0)


def test_matrices_are_a_turn_after_a_slant_after_a_stretch():
    drawn = Matrices((10, 40), (0.5, 0.7), (0.8, 1.2), (-0.2, 0.2)).draw(np.random.default_rng(1), 500)
    recovered = []
    for matrix in drawn:  # M = z R K D: QR gives R, and what is left is z [[a, k b], [0, b]]
        q, r = np.linalg.qr(matrix)
        q, r = q * np.sign(np.diag(r)), r * np.sign(np.diag(r))[:, None]
        assert abs(np.linalg.det(q) - 1) < 1e-9
        recovered.append((math.degrees(math.atan2(q[1, 0], q[0, 0])), r[0, 0], r[1, 1], r[0, 1] / r[1, 1]))
    turn, a, b, slant = np.array(recovered).T
    assert turn.min() > 10
    assert turn.max() < 40
    assert np.ptp(turn) > 28
    assert a.min() > 0.4
    assert a.max() < 0.84
    assert b.min() > 0.4
    assert b.max() < 0.84
    assert np.abs(slant).max() < 0.2
    assert np.ptp(slant) > 0.36
    assert np.abs(a / b - 1).max() > 0.3, "the two stretches are drawn apart"
    one = Matrices(turn=(90, 90)).draw(RNG, 1)[0]
    assert np.allclose(one @ [0, 1], [-1, 0]), "what was right goes up: counter-clockwise on the screen"


def test_images_are_moved_by_their_matrices_and_not_aliased():
    """Against SciPy: a smooth image sampled at Ax + b; where it shrinks, the mean over each new pixel."""
    axis = np.arange(28) - 13.5
    rows, columns = np.meshgrid(axis, axis, indexing="ij")
    image = np.exp(-((rows - 3) ** 2 / 18 + (columns + 2) ** 2 / 40)) * (1 + 0.3 * np.sin(rows / 3))
    image /= image.max()
    matrices = np.linalg.inv(Matrices((0, 360), (0.35, 1), (0.8, 1.2), (-0.2, 0.2)).draw(RNG, 12))
    offsets = RNG.uniform(-3, 3, (12, 2))
    ours = transformed(np.stack([image] * 12), matrices, 24, offsets) / 255
    fine = 8  # samples of a new pixel
    at = (np.arange(24 * fine) + 0.5) / fine - 12
    points = np.stack(np.meshgrid(at, at, indexing="ij"), -1)
    for one, matrix, offset in zip(ours, matrices, offsets, strict=True):
        where = points @ matrix.T + offset + 13.5
        truth = ndimage.map_coordinates(image, where.transpose(2, 0, 1), order=3, mode="grid-constant")
        truth = truth.reshape(24, fine, 24, fine).mean((1, 3))
        assert np.abs(one - truth).max() < 0.03
    stripes = np.stack([(np.indices((28, 28))[1] % 2).astype(float)])  # the finest pattern: shrunk, it must be grey
    grey = transformed(stripes, np.eye(2)[None] / 0.4, 28)[0, 10:18, 10:18] / 255
    assert np.abs(grey - 0.5).max() < 0.2


def test_affine_digits_stay_in_view(tmp_path):
    digit = np.zeros((28, 28), np.uint8)
    digit[4:24, 12:15], digit[4:7, 12:20] = 255, 255
    for name, count in (("train", 12), ("t10k", 60)):
        (tmp_path / f"{name}-images-idx3-ubyte").write_bytes(idx(np.stack([digit] * count)))
        (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(idx((np.arange(count) % 10).astype(np.uint8)))
    train, test = (mnist.load(tmp_path, split, "affine") for split in ("train", "test"))
    assert train.space == test.space == (40, 40)
    upright = train.__getitems__(range(8))[0][:, 0].double().numpy()
    assert np.abs(upright.sum((1, 2)) / digit.sum() - 1).max() < 0.02, "of its own size"
    wide, tall = (np.ptp(np.argwhere(image > 100), 0) for image in (upright[0], upright[1]))
    assert np.abs(np.stack([wide, tall]) - [19, 7]).max() <= 1, "not turned"
    assert np.ptp([ndimage.center_of_mass(image) for image in upright], 0).min() > 3, "everywhere"
    moved = test.__getitems__(range(60))[0][:, 0].double().numpy()
    ink = moved.sum((1, 2)) / digit.sum()  # the determinant of the matrix: none fell off
    assert ink.min() > 0.62
    assert ink.max() < 1.46
    centre = np.array([ndimage.center_of_mass(image) for image in moved])
    assert np.ptp(centre, 0).min() > 10, "everywhere"
    matrices = np.stack([np.eye(2)] * 60)
    shifts = places(np.stack([digit] * 60), matrices, 40, np.random.default_rng(0))
    lit = np.argwhere(digit) - 13.5
    reach = np.abs(lit[None] + shifts[:, None]).max()
    assert 19 < reach <= 19.5
