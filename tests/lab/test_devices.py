"""Two processes train as one does."""

import json
import os
import subprocess
import sys

import pytest

from lab.small_runs import new_run
from liespline.lab.tasks import find_task

TRAINING = {"epochs": 2, "batch_size": 128, "accelerator": "cpu", "precision": "64-true", "optimiser": "sgd"}
COMMAND = (
    *("train", "digits", "--elements", "2", "--set", "widths=2,2,3", "--epochs", "2", "--batch-size", "128", "--quiet"),
    *("--accelerator", "cpu", "--precision", "64-true", "--optimiser", "sgd"),
    *("--set", "dropout=0"),  # which every process draws for itself
)


def train(folder, *more):
    command = [sys.executable, "-m", "liespline.lab.cli", *COMMAND, "--out", str(folder), *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return rows, done


def alone(folder, augment):
    chosen = find_task("digits").defaults.updated(elements=2, widths=(2, 2, 3), dropout=0, augment=augment, **TRAINING)
    return new_run(chosen, folder).read_metrics()


@pytest.mark.parametrize("augment", ["none", "rotate"])
def test_two_processes_have_the_loss_curve_of_one(tmp_path, augment):
    one = alone(tmp_path / "one", augment)
    two, done = train(tmp_path / "two", "--set", "devices=2", "--augment", augment)
    assert [row["step"] for row in two] == [row["step"] for row in one] == [8, 16]
    # The training loss is float64 throughout; torchmetrics adds the validation's up in float32.
    for name, digits in (("train_loss", 1e-9), ("valid_loss", 1e-6), ("valid_accuracy", 1e-6)):
        assert [row[name] for row in two] == pytest.approx([row[name] for row in one], rel=digits), name
    assert (tmp_path / "two" / "report.html").is_file()
    assert "Warning" not in done.stderr
