"""A run that an earlier version wrote: read, resumed and repeated as what it was.

`tests/data/run-of-format-1` was trained for one epoch at commit 950defe by `liespline train images --group o2 --n-h 4
--n-k 2 --kernel dense --widths 2,2,3 --augment turns --epochs 1 --batch 8 --dropout 0`, then resumed for a second one;
`outputs.npz` holds what that version's networks gave for its 24 images.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from liespline import O2
from liespline.lab import load
from liespline.lab.settings import Config, ConfigError
from liespline.lab.tasks.grids import make_grid

OLD = Path(__file__).parents[1] / "data" / "run-of-format-1"
BY_A_RUN = "task: {task}\nnetwork: {{group: {group}, n_h: {n_h}, n_k: {n_k}, kernel: {kernel}}}\n"
BY_A_RUN += "training: {{augment: {augment}, devices: 1, nodes: 1, precision: 32-true}}\n"


@pytest.fixture
def old(tmp_path):
    shutil.copytree(OLD, tmp_path / "old")
    return tmp_path / "old"


def outputs(run):
    files = sorted((OLD / "images").rglob("*.png"))
    images = torch.stack([torch.tensor(np.asarray(Image.open(file)))[None] for file in files])
    with torch.no_grad():
        return load(run)(images).numpy()


def test_it_gives_what_it_gave(old):
    known = np.load(OLD / "outputs.npz")["after_one_epoch"]
    assert np.abs(outputs(old / "run") - known).max() < 1e-6
    assert len(make_grid(load(old / "run").config.network, 2)) == 8, "four rotations, and their reflections"


def test_it_is_resumed_as_if_nothing_had_happened(old, liespline):
    """With the same rotations, drawn for the same images of the same split, and the same splines."""
    status, said = liespline("train", "--resume", old / "run", "--data", old / "images", "--epochs", 2, "--quiet")
    assert status == 0, said
    known = np.load(OLD / "outputs.npz")
    assert np.abs(outputs(old / "run") - known["after_two"]).max() < 1e-6
    assert np.abs(known["after_two"] - known["after_one_epoch"]).max() > 1e-3
    written = yaml.safe_load((old / "run" / "config.yaml").read_text())
    assert written["format"] == 3
    assert (written["network"]["elements"], written["network"]["basis"]) == (8, 4)
    assert written["training"]["augment"] == "rotate"


def test_its_configuration_begins_the_same_network_anew(old, liespline):
    status, said = liespline(
        "train", "--config", old / "run" / "config.yaml", "--data", old / "images", "--out", old / "again", "--quiet"
    )
    assert status == 0, said
    assert np.abs(outputs(old / "again") - np.load(OLD / "outputs.npz")["after_one_epoch"]).max() < 1e-6


@pytest.mark.parametrize(
    ("task", "before", "now"),
    [
        ("images", "turns", "rotate"), ("images", "rotate", "rotate"), ("images", "flips", "flip"),
        ("images", "flips-turns", "rotate+flip"), ("images", "affine", "affine"), ("images", "slant", "zoom-shear"),
        ("images", "mirror", "mirror+zoom-shear"), ("images", "elastic", "affine+elastic"),
        ("images", "elastic-slant", "zoom-shear+elastic"), ("volumes", "spin", "rotate-z+zoom-shear"),
        ("segment", "flip-rotate", "rotate+flip"), ("segment", "rotate", "rotate"), ("pcam", "turns", "rotate"),
        ("pcam", "no-rot90", "no-rot90"), ("celeba", "zoom", "zoom"), ("digits", "none", "none"),
    ],
)  # fmt: skip
def test_old_words_are_read_as_what_they_meant(task, before, now):
    text = BY_A_RUN.format(task=task, augment=before, group="so2", n_h=8, n_k="null", kernel="dense")
    config = Config.from_yaml(text, "here")
    assert config.training.augment == now
    assert Config.from_yaml(config.to_yaml(), "here") == config, "what is written now is not translated again"


@pytest.mark.parametrize(
    ("group", "kernel", "n_k", "elements", "splines"),
    [
        ("o2", "dense", 4, 24, 8), ("o2", "atrous", 6, 24, 12), ("o2", "local", 3, 24, 3),
        ("o2", "dense", None, 24, None), ("so2", "dense", 4, 12, 4), ("o3", "dense", 12, 12, 12),
    ],
)  # fmt: skip
def test_of_o2_rotations_were_counted(group, kernel, n_k, elements, splines):
    text = BY_A_RUN.format(task="images", augment="none", group=group, n_h=12, n_k=n_k or "null", kernel=kernel)
    network = Config.from_yaml(text, "here").network
    assert (network.elements, network.basis) == (elements, splines)


def test_what_a_person_writes_has_todays_meaning():
    network = Config.from_yaml("task: images\nnetwork: {group: o2, elements: 12}\n", "here").network
    assert network.elements == 12
    grid = make_grid(network, 2)
    assert isinstance(grid.group, O2)
    assert len(grid) == 12


@pytest.mark.parametrize("format", ["4", "two", "true", "[1]"])
def test_a_format_of_the_future_is_refused(format):
    with pytest.raises(ConfigError, match=r"here: is of format .*; this version reads up to 3"):
        Config.from_yaml(f"format: {format}\ntask: images\n", "here")
