"""The digits that ship with scikit-learn, and the demonstration on them: complete, and honest about its own claim."""

import io
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console

from liespline.lab import demo
from liespline.lab.data import DataError, Split
from liespline.lab.data import digits as data
from liespline.lab.evaluation import evaluate
from liespline.lab.settings import Network
from liespline.lab.tasks import digits


def test_digits_upright_and_turned():
    upright = {split: data.load(split) for split in ("train", "valid", "test")}
    assert sum(map(len, upright.values())) == 1797
    turned = data.load("test", rotated=True)
    assert torch.equal(turned.targets, upright["test"].targets)
    assert turned.space == (24, 24)
    a, b = (split.__getitems__(range(450))[0].float() for split in (upright["test"], turned))
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


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    out, text = tmp_path_factory.mktemp("demo"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        small = replace(digits.TASK.defaults, network=Network(group="so2", elements=2, widths=(4, 4, 6)))
        patch.setattr(digits, "TASK", replace(digits.TASK, defaults=small))
        patch.setattr(evaluate, "MOVED_IMAGES", 5)
        console = Console(file=text, width=120)
        demo.run_demo(out, 0, console, epochs=1)
        rows = demo.run_demo(out, 0, console, epochs=1)  # a second demonstration replaces the first
    return rows, out, text.getvalue()


def test_three_networks_of_equal_size_differ_in_group_and_augmentation_alone(shown):
    plain, augmented, group = (row.trained.config for row in shown[0])
    assert (plain.network.group, augmented.network.group, group.network.group) == ("none", "none", "so2")
    assert (plain.training.augment, augmented.training.augment, group.training.augment) == ("none", "rotate", "none")
    assert replace(plain.training, augment="rotate") == augmented.training
    assert plain.training == group.training
    sizes = [sum(p.numel() for p in row.trained.parameters()) for row in shown[0]]
    assert max(sizes) <= 1.2 * min(sizes)  # so small a network cannot be matched more finely


def test_table_and_report_show_every_network(shown):
    rows, out, text = shown
    for word in ("upright", "rotated", "parameters", "seconds", "2-D, rotated training", "SE(2)"):
        assert word in text
    page = (out / "report.html").read_text()
    assert all(row.name in page for row in rows)
    assert "Feature maps under transformations" in page


def test_a_run_without_the_advantage_is_called_that(shown):
    plain, augmented, group = (row._replace(rotated=0.5) for row in shown[0])
    assert (
        demo.shortfall([plain._replace(rotated=0.3), augmented._replace(rotated=0.9), group._replace(rotated=0.95)])
        is None
    )
    assert demo.shortfall([plain._replace(rotated=0.8), augmented, group._replace(rotated=0.95)]) is not None
    assert "95.0" in demo.shortfall([plain, augmented._replace(rotated=0.97), group._replace(rotated=0.95)])
