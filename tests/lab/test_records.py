"""What the studies need of the lab: generated sets against their own definition, shares of labels, moved images."""

import json
import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from lab.mnist_files import idx
from lab.small_runs import new_run
from liespline.lab.data import Split
from liespline.lab.evaluation import evaluate
from liespline.lab.runs.trained import load
from liespline.lab.session import Session
from liespline.lab.settings import ConfigError
from liespline.lab.tasks import find_task
from liespline.lab.tasks.networks import Signature
from liespline.lab.training.train import keep_best
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


def test_a_share_of_the_labels_is_of_each_class_alike_and_grows():
    targets = np.repeat(np.arange(3), (50, 200, 750))
    split = Split(
        np.arange(1000, dtype=np.uint8).reshape(-1, 1, 1).repeat(2, 1),
        targets,
        "abc",
        names=list(map(str, range(1000))),
    )
    small, large = split.share(0.1), split.share(0.25)
    assert np.bincount(small.targets.numpy()).tolist() == [5, 20, 75]
    assert set(small.names) < set(large.names) < set(split.share(1.0).names)
    assert all(
        int(split.targets[int(name)]) == int(target) for name, target in zip(small.names, small.targets, strict=True)
    )
    assert split.share(0.1).names == small.names


def test_the_paper_network_takes_no_sizes():
    task = find_task("pcam")
    with pytest.raises(ConfigError, match="--parameters does nothing with the paper's network"):
        task.make(task.defaults.updated(parameters=5000), Signature(3, (88, 88), ("a", "b")))
    with pytest.raises(ConfigError, match=r"kernel_size = 9: .* has 5, or 7"):
        task.make(task.defaults.updated(kernel_size=9), Signature(3, (88, 88), ("a", "b")))


def test_a_run_with_validation_images_too_keeps_its_last_epoch(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluate, "MOVED_IMAGES", 5)
    config = find_task("digits").defaults.updated(
        elements=2, widths=(2, 2), epochs=2, batch_size=64, accelerator="cpu", train_on_val=True, train_fraction=0.2
    )
    run = new_run(config, tmp_path / "run")
    last = torch.load(run.last_checkpoint, weights_only=True)
    assert last["epoch"] == 1
    valid, train = (find_task("digits").load(config, split) for split in ("valid", "train"))
    assert last["global_step"] == 2 * ((len(train.share(0.2)) + len(valid)) // 64)
    worse = last | {"state_dict": {name: torch.zeros_like(value) for name, value in last["state_dict"].items()}}
    torch.save(worse, run.best_checkpoint)
    keep_best(Session(config, run))
    kept, weights = load(run.path).network.state_dict(), last["state_dict"]
    assert all(torch.equal(value, weights[f"network.{name}"]) for name, value in kept.items())
    results = json.loads(run.results_file.read_text())
    assert set(results["transformed"]["scores"]) == {"accuracy", "balanced_accuracy"}
