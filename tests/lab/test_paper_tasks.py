"""The paper's two experiments from files to results, on drawn data."""

import json
import math

import pytest
import torch

from lab.small_runs import new_run
from liespline.extras.synthetic import faces, tissue
from liespline.lab.data import celeba
from liespline.lab.evaluation import evaluate as finish
from liespline.lab.runs.trained import load
from liespline.lab.settings import Training
from liespline.lab.tasks import find_task

pytestmark = pytest.mark.filterwarnings("ignore:.*falls outside.*")


def short(config):
    kept = config.training
    return {"epochs": 1, "batch": 8, "accelerator": "cpu", "optimiser": kept.optimiser}


def naive_success(trained, folder):
    """The share of landmarks whose highest pixel is nearer than 10 pixels, one at a time."""
    hits = []
    for image, landmarks in celeba.load(folder, "test"):
        with torch.no_grad():
            maps = trained(image.unsqueeze(0))[0]
        for heat, (row, column) in zip(maps, landmarks.tolist(), strict=True):
            at_row, at_column = divmod(int(heat.argmax()), heat.shape[-1])
            hits.append(math.hypot(at_row - row, at_column - column) < 10)
    return sum(hits) / len(hits)


def test_celeba_from_official_files_to_landmarks(tmp_path):
    faces.synthesize(tmp_path / "official", identities=14, pictures=4)
    celeba.prepare(tmp_path / "official", tmp_path / "set")
    defaults = find_task("celeba").defaults
    assert defaults.training == Training(
        epochs=100, batch=8, optimiser="sgd", lr=0.01, decay=5e-4, augment="none"
    )  # the released scripts' recipe
    config = defaults.updated(group="none", **short(defaults), augment="zoom", data=str(tmp_path / "set"))
    run = new_run(config, tmp_path / "run")
    results = run.read_results()
    assert results["synthetic"]
    assert results["scores"]["success"] == pytest.approx(naive_success(load(run.path), tmp_path / "set"))
    page = run.report_file.read_text()
    assert "synthetic" in page
    assert page.count('class="overlay"') >= 1
    assert load(run.path).classes == celeba.LANDMARKS


def test_pcam_from_official_files_to_accuracy_and_auc(tmp_path, monkeypatch):
    monkeypatch.setattr(finish, "MOVED_IMAGES", 2)
    tissue.synthesize(tmp_path / "data", train=16, valid=8, test=8)
    (tmp_path / "data" / "camelyonpatch_level_2_split_test_x.h5").unlink()
    (tmp_path / "data" / "camelyonpatch_level_2_split_test_y.h5").unlink()
    defaults = find_task("pcam").defaults
    config = defaults.updated(n_h=4, n_k=4, **short(defaults), data=str(tmp_path / "data"))
    run = new_run(config, tmp_path / "run")
    results = run.read_results()
    assert set(results["scores"]) == {"loss", "accuracy", "balanced_accuracy", "auc"}
    assert results["split"] == "valid"  # there are no test files, and the page says so
    assert "have no test images" in run.report_file.read_text()
    rows = [json.loads(line) for line in run.metrics_file.read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [0]
    assert {"train_loss", "valid_loss", "valid_accuracy", "valid_auc", "images_per_second"} <= rows[0].keys()
