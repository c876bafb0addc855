"""The paper's tasks and its ready sets."""

import json
import math
from dataclasses import replace

import pytest
import torch

from lab.small_runs import new_run
from liespline.lab.data.augment import Draws
from liespline.lab.evaluation import evaluate as finish
from liespline.lab.networks import Signature
from liespline.lab.runs.folder import Run
from liespline.lab.runs.trained import load
from liespline.lab.settings import ConfigError, Training
from liespline.lab.tasks import find_task
from liespline.lab.training import optimisers
from liespline.lab.training.trainer import make_trainer
from studies.data import celeba
from studies.data.synthetic import faces, tissue
from studies.paper import pcam
from studies.paper.celeba import CELEBA
from studies.paper.pcam import PCAM
from studies.pcam import WHOLE

pytestmark = pytest.mark.filterwarnings("ignore:.*falls outside.*")


def short(config):
    kept = config.training
    return {"epochs": 1, "batch_size": 8, "accelerator": "cpu", "optimiser": kept.optimiser}


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
        epochs=100, batch_size=8, optimiser="sgd", smoothness=0.0, lr=0.01, weight_decay=5e-4, augment="none"
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
    config = defaults.updated(elements=4, basis=4, **short(defaults), data=str(tmp_path / "data"))
    run = new_run(config, tmp_path / "run")
    results = run.read_results()
    assert set(results["scores"]) == {"loss", "accuracy", "balanced_accuracy", "auc"}
    assert results["split"] == "valid"  # there are no test files, and the page says so
    assert "have no test images" in run.report_file.read_text()
    rows = [json.loads(line) for line in run.metrics_file.read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [0]
    assert {"train_loss", "valid_loss", "valid_accuracy", "valid_auc", "images_per_second"} <= rows[0].keys()


def test_an_epoch_of_pcam_is_2048_steps_of_32(tmp_path, monkeypatch):
    """65,536 images whatever the batch, a quarter of the official set; of a smaller set each image once."""
    config = find_task("pcam").defaults
    assert steps_per_epoch(config, tmp_path) == 2048
    assert steps_per_epoch(config.updated(batch_size=128), tmp_path) == 512
    # The rate of the first batch of each epoch, read off a run: four steps of 8 in an epoch of 32 of 40 images.
    monkeypatch.setattr(finish, "MOVED_IMAGES", 2)
    monkeypatch.setattr(pcam, "PCAM", replace(pcam.PCAM, epoch_images=32))
    monkeypatch.setattr(optimisers, "HALVED_EVERY", 50)
    tissue.synthesize(tmp_path / "data", train=40, valid=8, test=8)
    small = config.updated(group="none", **short(config) | {"epochs": 3}, data=str(tmp_path / "data"))
    rows = new_run(small, tmp_path / "run").read_metrics()
    assert [row["step"] for row in rows] == [4, 8, 12]
    assert [row["lr"] for row in rows] == [0.01, 0.005, 0.0025]  # as it stands after each epoch


def steps_per_epoch(config, folder):
    return make_trainer(config, Run(folder), "valid_accuracy", progress=False).limit_train_batches


def test_the_paper_network_takes_no_sizes():
    with pytest.raises(ConfigError, match="--parameters does nothing with the paper's network"):
        PCAM.make(PCAM.defaults.updated(parameters=5000), Signature(3, (88, 88), ("a", "b")))
    with pytest.raises(ConfigError, match="--set separable=… does nothing with the paper's network"):
        PCAM.make(PCAM.defaults.updated(separable=True), Signature(3, (88, 88), ("a", "b")))
    with pytest.raises(ConfigError, match=r"kernel_size = 9: .* has 5, or 7"):
        PCAM.make(PCAM.defaults.updated(kernel_size=9), Signature(3, (88, 88), ("a", "b")))


@pytest.mark.filterwarnings("ignore:.*energy falls outside")  # of the paper's
def test_the_set_of_whole_windows_differs_in_them_alone():
    paper, whole = WHOLE.configs({}).values()
    assert whole == paper.updated(kernel_size=7)
    networks = [PCAM.make(config, Signature(3, (88, 88), ("a", "b"))) for config in (paper, whole)]
    assert [p.shape for p in networks[0].parameters()] == [p.shape for p in networks[1].parameters()]


@pytest.mark.parametrize(("preset", "least", "most"), [("paper", 0, 1), ("released", 20, 44)])
def test_the_task_zooms_as_often_as_its_preset_does(preset, least, most):
    zoom = CELEBA.augmentations["zoom"](CELEBA.defaults.updated(preset=preset))
    points = torch.full((64, 1, 2), 20.0)
    _, moved = zoom(torch.zeros(64, 1, 32, 32), points, Draws(torch.Generator().manual_seed(0)))
    assert least <= int(((moved - points).abs().amax((1, 2)) < 1e-4).sum()) <= most


@pytest.mark.parametrize(("preset", "blur"), [("paper", 0.0), ("released", 1.0)])
def test_the_released_scripts_blur_before_they_look(preset, blur):
    signature = Signature(3, (128, 128), ("nose",), kind="points")
    assert CELEBA.objective(CELEBA.defaults.updated(preset=preset), signature).blur == blur
