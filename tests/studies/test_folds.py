"""Folds of a set's training and validation parts: each volume tests once, and the test part is never opened."""

from itertools import pairwise

import numpy as np
import pytest

from liespline.lab.tasks import find_task
from studies import folds


@pytest.fixture
def file(tmp_path):
    """Forty volumes, each with its number in every voxel but for an exact copy, and test arrays that cannot be read."""
    numbers = np.arange(40, dtype=np.uint8)
    numbers[1] = numbers[0]
    volumes = np.broadcast_to(numbers[:, None, None, None], (40, 4, 4, 4))
    labels = (np.arange(40) % 2)[:, None].astype(np.uint8)
    path = tmp_path / "set.npz"
    labels[1] = labels[0]
    np.savez(path, train_images=volumes[:30], train_labels=labels[:30], val_images=volumes[30:], val_labels=labels[30:],
             test_images=np.array(["sealed"]))  # fmt: skip
    return path


def test_every_volume_tests_in_one_fold_and_copies_stay_together(file):
    task = find_task("studies.folds:VOLUMES")

    def seen(seed, split):
        found = task.load(task.defaults.updated(data=str(file), seed=seed), split)
        assert found.targets.tolist() == [int(name.split()[1]) % 2 for name in found.names] or "volume 1" in found.names
        return set(found.names)

    tested = [seen(seed, "test") for seed in range(folds.FOLDS)]
    assert set().union(*tested) == {f"volume {row}" for row in range(40)}
    assert sum(map(len, tested)) == 40
    assert tested[0] == seen(folds.FOLDS, "test"), "seeds go on in a circle"
    for seed in range(folds.FOLDS):
        parts = [seen(seed, split) for split in ("train", "valid", "test")]
        assert sum(map(len, parts)) == 40
        assert all(not (a & b) for a, b in pairwise([*parts, parts[0]]))
        assert any({"volume 0", "volume 1"} <= part for part in parts)
