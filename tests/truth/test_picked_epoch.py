"""Which epoch a network is of, what is said about it, and that its validation score is what evaluate says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from liespline.lab import load
from liespline.lab.runs.folder import Run
from liespline.lab.runs.model_file import read_weights, save_weights
from truth.conftest import cells, write_pair, write_table
from truth.road import Road, train
from truth.shell import succeeds

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
