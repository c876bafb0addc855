"""How epochs are validated, which one a network is of, and that its validation score is what evaluate says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lightning.pytorch.callbacks.progress.rich_progress import CustomProgress

from liespline.lab import load
from liespline.lab.runs.folder import Run
from liespline.lab.runs.model_file import read_weights, save_weights
from liespline.lab.training.learner import Learner
from truth.conftest import cells, write_pair, write_table
from truth.road import Road, liespline, train
from truth.shell import command, succeeds
from truth.test_masks import PLAIN, epochs_of, evaluated, picked, picture

KINDS = ("folders", "classes", "numbers", "tags", "points", "volumes", "masks", "scans")


def check(road: Road) -> None:
    row, found = road.rows()[road.kept_epoch()], road.evaluated("valid")["scores"]
    said = {name.removeprefix("valid_"): value for name, value in row.items() if name.startswith("valid_")}
    assert said.keys() == ({"dice", "loss"} if "dice" in found else found.keys())
    assert said == pytest.approx({name: found[name] for name in said}, abs=1e-4, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_evaluate_says_what_training_said(kind, request):
    check(request.getfixturevalue(kind))


@pytest.fixture(scope="module")
def uneven(tmp_path_factory) -> Path:
    """Scans of several sizes and uneven voxels, with masks, and a shuffled table of each kind of label."""
    root, draw = tmp_path_factory.mktemp("uneven"), np.random.default_rng(12)
    rows = []
    for i, number in enumerate(draw.permutation(26)):
        spacing = (1.5, 1.0, 2.2) if i % 3 else (1.2, 1.0, 1.8)
        image, mask = cells(draw, (9 + i % 2, 12, 7), spacing)
        write_pair(root / "data", f"s{number}", image, mask, np.diag([*spacing, 1.0]))
        rows.append((f"s{number}.nii.gz", "ccbcba"[i % 6], i % 2, int(image.mean() > 70), int((mask > 0).sum())))
    rows = draw.permutation(rows).tolist()
    for kind, columns in {"classes": (1,), "tags": (2, 3), "numbers": (4,)}.items():
        names = ("file", *(f"{kind}{column}" for column in columns))
        write_table(root / f"{kind}.csv", names, [[row[0], *(row[column] for column in columns)] for row in rows])
    return root


@pytest.mark.parametrize("kind", ["classes", "tags", "numbers", "masks"])
def test_volumes_that_are_brought_to_other_voxels(kind, uneven, tmp_path):
    plain = {"group": "none", "elements": None, "spacing": 1.7, "lr": 0.03, "batch_size": 4}
    if kind == "masks":
        run = train("segment", uneven / "data", tmp_path / "run", patch=8, **plain)
    else:
        labels = {"labels": uneven / f"{kind}.csv", "label_type": kind}
        run = train("volumes", uneven / "data" / "images", tmp_path / "run", **labels, **plain)
    check(Road(run, {}, {}))


RESULTS = Path(__file__).parents[2] / "studies" / "results"
SMALL = "--elements 2 --set widths=2,2,2 --epochs 1 --batch-size 100 --accelerator cpu --quiet".split()


@pytest.fixture
def last(tmp_path):
    succeeds("train", "digits", "--set", "train_on_val=true", "--out", tmp_path / "run", *SMALL)
    return Run(tmp_path / "run")


def test_where_no_epoch_is_picked_nothing_says_that_one_was(last, liespline):
    assert json.loads(last.results_file.read_text())["checkpoint_metric"] is None
    assert load(last.path).checkpoint_metric is None
    page = last.report_file.read_text()
    assert "This is the last epoch; it was trained on the validation images too." in page
    assert "best validation" not in page
    assert "Validation accuracy" in page, "the curve is shown"
    last.report_file.unlink()
    assert liespline("train", "--resume", last.path, "--quiet")[0] == 0, "the report is made again from null"
    assert last.report_file.is_file()
    assert liespline("evaluate", last.path)[0] == 0


def test_a_file_that_says_so_falsely_is_not_believed(last):
    weights, about = read_weights(last.model_file)
    assert about["checkpoint_metric"] is None
    save_weights(last.model_file, weights, about | {"checkpoint_metric": "accuracy"})
    assert load(last.path).checkpoint_metric is None


def test_a_picked_epoch_says_by_what(tmp_path, liespline):
    assert liespline("train", "digits", "--out", tmp_path / "run", *SMALL)[0] == 0
    assert Run(tmp_path / "run").read_results("checkpoint_metric")["checkpoint_metric"] == "accuracy"
    assert load(tmp_path / "run").checkpoint_metric == "accuracy"


def test_stored_results_say_what_was_done():
    none, picked = 0, 0
    for file in RESULTS.glob("*.jsonl"):
        for line in map(json.loads, file.read_text().splitlines()):
            if "checkpoint_metric" in line.get("results", {}):
                last = line["config"]["training"].get("train_on_val", False)
                assert (line["results"]["checkpoint_metric"] is None) == last, (file, line["network"], line["seed"])
                none, picked = none + last, picked + (not last)
    assert none >= 29
    assert picked > 200


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
