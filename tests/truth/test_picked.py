"""Which epoch a network is of, and what is said about it."""

import json
from pathlib import Path

import pytest

from liespline.lab import load
from liespline.lab.runs.folder import Run
from liespline.lab.runs.model_file import read_weights, save_weights
from truth.shell import succeeds

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
