"""Two processes train as one does."""

import json
import os
import subprocess
import sys

import pytest

COMMAND = (
    *("train", "digits", "--elements", "2", "--epochs", "2", "--batch-size", "128", "--augment", "rotate", "--quiet"),
    *("--accelerator", "cpu", "--precision", "64-true", "--optimiser", "sgd", "--set", "widths=2,2,3"),
    *("--set", "dropout=0"),  # which every process draws for itself
)


def train(folder, devices):
    command = [sys.executable, "-m", "liespline.lab.cli", *COMMAND, "--out", str(folder), "--set", f"devices={devices}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_two_processes_have_the_loss_curve_of_one(tmp_path):
    """Of rotated images too: every process draws the same rotations and takes its share of them."""
    one, two = (train(tmp_path / str(devices), devices) for devices in (1, 2))
    assert [row["step"] for row in two] == [row["step"] for row in one] == [8, 16]
    # The training loss is float64 throughout; torchmetrics adds the validation's up in float32.
    for name, digits in (("train_loss", 1e-9), ("valid_loss", 1e-6), ("valid_accuracy", 1e-6)):
        assert [row[name] for row in two] == pytest.approx([row[name] for row in one], rel=digits), name
    assert (tmp_path / "2" / "report.html").is_file()
