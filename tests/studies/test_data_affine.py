"""Sets of digits moved by matrices, against their own definition and SciPy."""

import math

import numpy as np
from scipy import ndimage

from lab.mnist_files import idx
from studies.data import mnist
from studies.data.matrices import Matrices, places
from studies.data.resample import transformed

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
