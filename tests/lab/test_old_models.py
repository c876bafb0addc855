"""Networks of version 0.2 and of today are made again from their files alone, without their tasks."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

import liespline as ls
from liespline.lab import load
from liespline.lab.networks import VERSION, Signature
from liespline.lab.runs.folder import Run
from liespline.lab.runs.model_file import read_weights, save_weights
from liespline.lab.runs.trained import save_trained
from liespline.lab.settings import ConfigError
from liespline.lab.tasks import find_task

# As 0.2 wrote them: no version of the architecture, and of each network only that it was no ResNet.
TOP = {"data": None, "size": None, "labels": None, "labels_are": None, "folds": None, "fold": None, "patch": None}
TOP |= {"window": None, "spacing": None, "about": "image", "moved": "rotated", "preset": "paper", "seed": 0}
NETWORK = {"group": "so2", "network": "classifier", "n_h": 2, "within": None, "kernel": "dense", "n_k": None}
NETWORK |= {"separable": False, "kernel_size": 5, "stride": 1, "scale": 1.0, "widths": [8, 12, 16, 24], "weights": None}
NETWORK |= {"disc": False, "grids": 1, "ensemble": 1, "dropout": 0.3}
TRAINING = {"epochs": 2, "batch": 8, "optimiser": "adamw", "lr": 0.01, "decay": 0.01, "schedule": "usual", "ema": 0.0}
TRAINING |= {"devices": 1, "nodes": 1, "precision": "32-true"}
SIGNATURE = {"in_channels": 1, "classes": ["a", "b"], "spacing": None, "kind": "classes", "scaling": []}
H, SCALES = ls.uniform(ls.SO2(), 2), {"group": "scale", "kernel": "local", "n_k": 1}
OLD = {
    "pcam": ({"n_h": 4, "n_k": 4}, {"in_channels": 3, "space": [88, 88]}, lambda: ls.models.pcam(4, 4, "dense")),
    "celeba": (
        {**SCALES, "n_h": 2}, {"in_channels": 3, "space": [128, 128], "classes": [*"abcde"]},
        lambda: ls.models.celeba(2, 1, "local"),
    ),
    "landmarks": (
        SCALES, {"space": [32, 40], "kind": "points"},
        lambda: ls.models.celeba(2, 1, "local", in_channels=1, landmarks=2),
    ),
    "segment": (
        {"widths": [3, 4, 5]}, {"space": [32, 48], "kind": "masks"},
        lambda: ls.models.unet(1, 2, H, widths=(3, 4, 5)),
    ),
    # Only the first of the default widths had room; a user's own were kept.
    "images": (
        {"widths": [12, 16, 24, 32, 48]}, {"space": [16, 16]},
        lambda: ls.models.classifier(1, 2, H, widths=(12, 16, 24, 32)),
    ),
    "digits": ({"widths": [3, 4, 5]}, {"space": [24, 24]}, lambda: ls.models.classifier(1, 2, H, widths=(3, 4, 5))),
    # The default widths of a chain meant those of the ResNet.
    "rotmnist": (
        {"network": "resnet", "widths": [16, 24, 32, 48]}, {"space": [28, 28]},
        lambda: ls.models.resnet(1, 2, H, widths=(24, 24, 48, 48), kernel="dense", version=1),
    ),
    "mnist": (
        {"network": "resnet", "widths": [3, 5], "weights": 9_000}, {"space": [28, 28]},
        lambda: ls.models.resnet(1, 2, H, widths=(3, 5), kernel="dense", parameters=9_000, version=1),
    ),
}  # fmt: skip
USE = """
import importlib.util, json, sys
import torch
from liespline.lab import load
assert importlib.util.find_spec("studies") is None, "the test would say nothing"
for name in json.loads(sys.argv[1]):
    trained = load(f"{name}/model.safetensors")
    torch.save(trained(torch.load(f"{name}/images.pt")).detach(), f"{name}/answers.pt")
    assert not any(module.startswith(("studies", "lightning")) for module in sys.modules)
"""


def written(folder, task):
    """A model file of version 0.2, images for it, and what the network of the core says of them."""
    changes, size, made = OLD[task]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the paper's small windows
        network = made().eval()
    values = {"task": task, **TOP, "network": NETWORK | changes, "training": TRAINING}
    about = {"config": values, "signature": SIGNATURE | size, "epoch": 1}
    (folder / task).mkdir(parents=True)
    save_weights(folder / task / "model.safetensors", network.state_dict(), about)
    images = torch.rand(2, about["signature"]["in_channels"], *size["space"])
    torch.save(images, folder / task / "images.pt")
    return network(images).detach()


def test_old_files_answer_where_studies_cannot_be_imported(tmp_path):
    expected = {task: written(tmp_path, task) for task in OLD}
    command = [sys.executable, "-I", "-W", "ignore", "-c"]
    source = f"import sys; sys.path.insert(0, {str(Path(ls.__file__).parents[1])!r})\n"
    done = subprocess.run(
        [*command, source + USE, json.dumps(list(OLD))], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for task, wanted in expected.items():
        assert torch.equal(torch.load(tmp_path / task / "answers.pt"), wanted), task


def test_what_old_files_do_not_say(tmp_path):
    monitors = {"pcam": "accuracy", "celeba": "success", "landmarks": "success", "segment": "dice"}
    for task, monitor in monitors.items():
        written(tmp_path, task)
        if task == "celeba":  # before 0.2, files did not say what comes out
            weights, about = read_weights(tmp_path / task / "model.safetensors")
            del about["signature"]["kind"]
            save_weights(tmp_path / task / "model.safetensors", weights, about)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trained = load(tmp_path / task / "model.safetensors")
        assert trained.checkpoint_metric == monitor
        assert trained.signature.kind == {"success": "points", "dice": "masks"}.get(monitor, "classes")
        assert trained.tiling((16, 16)).multiple == {"segment": 4, "celeba": 2, "landmarks": 2}.get(task, 1)


@pytest.mark.parametrize("task", ["images", "volumes"])
def test_a_file_of_today_holds_what_the_data_decided(tmp_path, task):
    """Whatever the defaults become, and whatever the task then makes of them, the file says how wide its layers are."""
    chosen, space = find_task(task), (16, 16) if task == "images" else (12, 12, 12)
    for network in chosen.networks:
        config = chosen.defaults.updated(network=network, elements=12 if task == "volumes" else 2, stride=1)
        signature = Signature(1, space, ("a", "b"))
        run = Run(tmp_path / network)
        run.path.mkdir()
        made = chosen.make(config, signature)
        save_trained(run, chosen.settled(config, signature), signature, made.state_dict(), 0, None)
        described = read_weights(run.model_file)[1]["config"]["network"]
        assert described["architecture"] == VERSION
        layers = sum(isinstance(module, ls.Lift | ls.GConv) for module in made.modules())
        expected = (8, 8) if network == "resnet" else config.network.widths[:layers]
        assert tuple(described["widths"]) == expected
        assert load(run.path).state_dict().keys() == {f"network.{name}" for name in made.state_dict()}


def test_a_network_of_a_later_version_is_refused(tmp_path):
    written(tmp_path, "digits")
    weights, about = read_weights(tmp_path / "digits" / "model.safetensors")
    about["config"]["network"]["architecture"] = 7
    save_weights(tmp_path / "digits" / "model.safetensors", weights, about)
    with pytest.raises(ValueError, match="architecture = 7: this liespline makes networks up to version 2; update it"):
        load(tmp_path / "digits" / "model.safetensors")
    task, signature = find_task("landmarks"), Signature(1, (8, 8), ("a",))
    with pytest.raises(ConfigError, match=r"network \(task landmarks\) 'resnet' is unknown"):
        task.make(task.defaults.updated(network="resnet"), signature)
