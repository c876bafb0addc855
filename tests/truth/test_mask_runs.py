"""How segmentations are validated: not after every epoch, in several processes, and the same after a resume."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from lightning.pytorch.callbacks.progress.rich_progress import CustomProgress

from liespline.lab.training.learner import Learner
from truth.road import liespline
from truth.shell import command
from truth.test_masks import PLAIN, epochs_of, evaluated, picked, picture


@pytest.fixture
def few_patches(tmp_path):
    """128 patches of 8² in an epoch, and 19,433 pixels to validate: ⌈19,433 / 8,192⌉ = 3."""
    root, draw = tmp_path / "set", np.random.default_rng(6)
    for i, size in enumerate([(20, 18), (18, 20), (21, 18), (20, 19)]):
        picture(root / "train", f"t{i}", size, draw)
    for i, size in enumerate([(83, 81), (95, 70), (60, 101)]):
        picture(root / "valid", f"v{i}", size, draw)
    return root


class Killed(RuntimeError):
    """No error that the command turns into words."""


def test_every_third_epoch_is_validated_and_a_resumed_run_is_the_same_to_the_bit(few_patches, tmp_path, monkeypatch):
    given = ("train", "segment", "--data", few_patches, *PLAIN, "--patch", 8, "--epochs", 8, "--set", "ema=0.9")
    said = liespline(*given, "--out", tmp_path / "whole")
    assert "have 19,433 samples, the patches of an epoch 8,192: validated every 3 epochs, and after the last" in said
    begin = Learner.on_train_epoch_start

    def killed(self):
        if self.current_epoch == 4:
            raise Killed
        begin(self)

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "on_train_epoch_start", killed)
        with pytest.raises(Killed):
            command(*given, "--out", tmp_path / "killed")
    assert len(epochs_of(tmp_path / "killed")) == 4
    liespline("train", "--resume", tmp_path / "killed", "--quiet")
    whole, resumed = (epochs_of(tmp_path / name) for name in ("whole", "killed"))
    assert [row["epoch"] for row in whole if any(name.startswith("valid_") for name in row)] == [2, 5, 7]
    assert all("train_loss" in row for row in whole)
    timed = {"seconds", "images_per_second", "memory_mib"}
    for one, other in zip(whole, resumed, strict=True):
        assert {k: v for k, v in one.items() if k not in timed} == {k: v for k, v in other.items() if k not in timed}
    assert len({(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")}) == 1
    row, scores = picked(tmp_path / "whole"), evaluated(tmp_path / "whole")["scores"]
    assert row["valid_dice"] == pytest.approx(scores["dice"], abs=1e-6)
    liespline("train", "--resume", tmp_path / "killed", "--epochs", 9, "--quiet")
    assert [row["epoch"] for row in epochs_of(tmp_path / "killed") if "valid_dice" in row] == [2, 5, 7, 8]


def test_a_bar_shows_how_far_validation_is(few_patches, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal
    # Every step is drawn: a clock would leave out those that are over too soon.
    monkeypatch.setattr(CustomProgress, "soft_refresh", CustomProgress.refresh)
    loud = [word for word in PLAIN if word != "--quiet"]
    small = ("--patch", 8, "--epochs", 1, "--out", tmp_path / "run")
    said = liespline("train", "segment", "--data", few_patches, *loud, *small)
    assert re.search(r"Validation .* [1-3]/3 ", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said))


def test_two_processes_score_each_image_once(tmp_path):
    root, draw = tmp_path / "set", np.random.default_rng(8)
    for split, count in (("train", 4), ("valid", 3)):
        for i in range(count):
            picture(root / split, f"p{i}", (24 + i, 31 - 2 * i), draw)
    given = ("train", "segment", "--data", root, "--out", tmp_path / "run", *PLAIN, "--epochs", 2, "--patch", 16)
    line = [sys.executable, "-m", "liespline.lab.cli", *map(str, (*given, "--set", "devices=2", "--set", "ema=0.8"))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    row, found = picked(tmp_path / "run"), evaluated(tmp_path / "run")
    assert found["images"] == 3
    assert row["valid_dice"] == pytest.approx(found["scores"]["dice"], abs=1e-6)
    assert row["valid_loss"] == pytest.approx(found["scores"]["loss"], rel=1e-5)
