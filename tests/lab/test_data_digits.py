"""The digits that ship with scikit-learn, and how images are turned."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from liespline.lab.data import DataError, Split, digits


def test_digits_upright_and_turned():
    upright = {split: digits.load(split) for split in ("train", "valid", "test")}
    assert sum(map(len, upright.values())) == 1797
    turned = digits.load("test", rotated=True)
    assert torch.equal(turned.targets, upright["test"].targets)
    assert turned.space == (24, 24)
    a, b = (data.__getitems__(range(450))[0].float() for data in (upright["test"], turned))
    ink = (b.sum((1, 2, 3)) / a.sum((1, 2, 3))).numpy()
    assert np.abs(ink - 1).max() < 0.05, "turning neither cuts nor adds ink"
    assert (a - b).abs().mean() > 20, "and it does turn"


DRAWN = """
import hashlib
from liespline.lab.data import digits
for rotated in (False, True):
    split = digits.load("train", rotated)
    print(hashlib.sha256(split.__getitems__(range(len(split)))[0].numpy().tobytes()).hexdigest())
"""


def test_generated_digits_are_the_same_on_other_processors():
    # torch computes with other instructions then, whose last bits differ
    said = [
        subprocess.run(
            [sys.executable, "-c", DRAWN],
            env=os.environ | {"ATEN_CPU_CAPABILITY": kind, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for kind, threads in (("default", "1"), ("avx2", "2"))
    ]
    assert said[0] == said[1]
    assert len(set(said[0])) == 2


def test_split_refuses_mismatched_targets():
    with pytest.raises(DataError, match="5 images but 4 targets"):
        Split(np.zeros((5, 3, 3), np.uint8), np.zeros(4), ("a", "b"))
