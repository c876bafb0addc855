"""experiments/copies.py: the mean over copies of a digit, chosen on digits that are in no split."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from lab.mnist_files import small_mnist
from lab.small_runs import new_run
from liespline.lab.data.split import Split
from liespline.lab.runs.folder import Run
from liespline.lab.runs.trained import load
from liespline.lab.tasks import find_task
from liespline.nn import OverGrids
from studies.data import mnist


@pytest.fixture
def script(experiment, monkeypatch):
    module = experiment("copies")
    monkeypatch.setattr(module, "BATCH", 8)
    return module


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study of one small run, and the digits that it learned from."""
    small_mnist(tmp_path, 150, 50)
    monkeypatch.setattr(mnist, "_COUNTS", {"train": 60, "valid": 20, "test": 100})
    folder = tmp_path / "records-rotmnist-ensemble"
    config = find_task("rotmnist").defaults.updated(
        data=str(tmp_path), n_h=4, widths=(2, 3), epochs=1, batch=16, accelerator="cpu", compile=False, workers=0
    )
    new_run(config, folder / "runs" / "so2-4" / "seed-0")
    about = {"task": "records", "set": "rotmnist-ensemble", "seeds": 1, "settings": {}, "commit": "abc"}
    (folder / "study.yaml").write_text(yaml.safe_dump(about))
    return folder


def test_copies_are_other_digits_each_time_and_the_same_for_every_network(script):
    images = torch.randint(0, 256, (20, 1, 28, 28), dtype=torch.uint8)
    first, again, other = (torch.cat(list(script.copies(images, "half bent", number))) for number in (0, 0, 1))
    assert first.shape == images.shape
    assert torch.equal(first, again)
    assert ((first - other).flatten(1).norm(dim=1) > 1).all()
    assert torch.equal(torch.cat(list(script.copies(images, "as it lies", 3))), images / 255)


def test_an_answer_is_the_mean_over_its_copies(script, study):
    trained, outside = load(study / "runs" / "so2-4" / "seed-0"), mnist.outside(study.parent)
    each = script.answers(Run(study / "runs" / "so2-4" / "seed-0"), outside)
    images, targets = outside.__getitems__(range(20))
    with torch.no_grad():
        lying, grids = trained(images), OverGrids(trained.network, 2)(images / 255)
        bent = [trained(torch.cat(list(script.copies(images, "half bent", number)))) for number in range(8)]
    means = {"as it lies": lying, "two grids": grids, "half bent": sum(bent) / 8}
    for way, mean in means.items():
        assert each.errors(way) == int((mean.argmax(1) != targets).sum()), way
    assert torch.allclose(each.of("half bent", 7), bent[7], atol=1e-5)


class Reads(nn.Module):
    """Knows every digit by its first pixel, and errs where a copy was moved."""

    def forward(self, x):
        return nn.functional.one_hot((x[:, 0, 0, 0] * 255).round().long() % 10, 10).float()


def test_the_best_way_outside_is_the_one_that_is_tested(script, study, tmp_path, monkeypatch):
    """Whatever the test images would prefer: there, the images as they lie are all wrong."""
    labels = np.arange(30) % 10
    images = np.zeros((30, 28, 28), np.uint8)
    images[:, 0, 0] = labels
    splits = {"outside": Split(images, labels, mnist.CLASSES), "test": Split(images, (labels + 1) % 10, mnist.CLASSES)}
    monkeypatch.setattr(mnist, "outside", lambda path: splits["outside"])
    monkeypatch.setattr(mnist, "load", lambda path, split: splits[split])
    monkeypatch.setattr(script, "OverGrids", lambda *network: SimpleNamespace(networks=(Reads(), Reads())))
    script.main(study, tmp_path, tmp_path / "out")
    results = Run(tmp_path / "out" / "runs" / "so2-4" / "seed-0").read_results("weights", "split", "task")
    assert results["images"] == 30
    assert results["scores"] == {"accuracy": 0.0}
    assert "moves" not in results, "they were measured without copies"
    assert "| so2-4 |" in (tmp_path / "out" / "results.md").read_text()


def test_a_folder_without_finished_runs_is_named(script, tmp_path):
    with pytest.raises(SystemExit, match="nothing-here: has no finished runs"):
        script.main(tmp_path / "nothing-here", tmp_path, tmp_path / "out")
