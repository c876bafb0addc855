"""Runs that version 0.2 wrote: read, scored, resumed and repeated as what they were.

All were trained for one epoch at commit 950defe by the `command` in their `environment.json`, then resumed for a second
one; `outputs.npz` holds what that version's networks gave before and after: for the 24 images of two classes, or the
logits of the second segmented image. `run-of-format-1` is of O(2) (`--n-h 4`: four rotations), `run-of-0.2-jitter` of
grids that move (`--shift`), `run-of-0.2-segment` of a U-Net, without augmentation: 0.2 drew other rotations for masks.
Each lies packed in `tests/data`, with the images that it was trained on.
"""

import json
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
from truth.shell import fails, succeeds

DATA = Path(__file__).parents[1] / "data"
RUNS = ("run-of-format-1", "run-of-0.2-jitter", "run-of-0.2-segment")
BY_A_RUN = "task: {task}\nnetwork: {{group: {group}, n_h: {n_h}, n_k: {n_k}, kernel: {kernel}}}\n"
BY_A_RUN += "training: {{augment: {augment}, devices: 1, nodes: 1, precision: 32-true}}\n"


@pytest.fixture(params=RUNS)
def old(request, tmp_path):
    """A run with its outputs, and its data beside it in `own`; the run with jitter was of the images of the first."""
    segment = request.param.endswith("segment")
    for name in {request.param, request.param if segment else RUNS[0]}:
        shutil.unpack_archive(DATA / f"{name}.zip", tmp_path)
    (tmp_path / (request.param if segment else RUNS[0]) / ("data" if segment else "images")).rename(tmp_path / "own")
    return tmp_path / request.param


def outputs(run):
    """What a run's network gives for the stored images."""
    trained, data = load(run), run.parents[1] / "own"
    files = sorted(data.rglob("*.png")) if trained.signature.kind == "classes" else [data / "images" / "01.png"]
    images = torch.stack([torch.tensor(np.asarray(Image.open(file)))[None] for file in files])
    with torch.no_grad():
        return trained(images).numpy() if len(files) > 1 else trained.in_tiles(images / 255)[0].numpy()


def near(run, when):
    return np.abs(outputs(run) - np.load(run.parent / "outputs.npz")[when]).max() < 1e-6


def test_it_gives_what_it_gave(old):
    assert near(old / "run", "after_one_epoch")
    if old.name == RUNS[0]:
        assert len(make_grid(load(old / "run").config.network, 2)) == 8, "four rotations, and their reflections"


def test_it_is_scored_as_it_was(old):
    """The images that it held out then are found by its data.json; Dice and accuracy are as they were."""
    said = succeeds("evaluate", old / "run", "--data", old.parent / "own", "--json")
    found = json.JSONDecoder().raw_decode(said[said.index("{") :])[0]
    before = json.loads((old / "run" / "results.json").read_text())
    assert found["images"] == before["images"]
    assert found["confusion"] == before["confusion"]
    assert found["scores"]["loss"] == pytest.approx(before["scores"]["loss"], rel=1e-5)


def test_it_is_resumed_as_if_nothing_had_happened(old):
    """With the same rotations, jitter and patches, drawn for the same images of the same split."""
    succeeds("train", "--resume", old / "run", "--data", old.parent / "own", "--epochs", 2, "--quiet")
    assert near(old / "run", "after_two")
    assert not near(old / "run", "after_one_epoch")
    written = yaml.safe_load((old / "run" / "config.yaml").read_text())
    assert written["format"] == 4
    if old.name == RUNS[0]:
        assert (written["network"]["elements"], written["network"]["basis"]) == (8, 4)
    if not old.name.endswith("segment"):
        assert written["training"]["augment"] == "rotate"


def test_it_is_refused_other_data_than_it_began_with(old):
    kept = json.loads((old / "run" / "data.json").read_text())["splits"]["train"]
    name = min(kept)
    file = old.parent / "own" / (f"images/{name}.png" if old.name.endswith("segment") else name)
    pixels = np.array(Image.open(file))
    pixels[3, 4] ^= 16
    Image.fromarray(pixels).save(file)
    before = (old / "run" / "checkpoints" / "last.ckpt").read_bytes()
    said = fails("train", "--resume", old / "run", "--data", old.parent / "own", "--epochs", 2, "--quiet")
    assert f"1 replaced by other pixels ({name})" in said
    assert (old / "run" / "checkpoints" / "last.ckpt").read_bytes() == before


def test_its_configuration_begins_the_same_network_anew(old):
    config, data = old / "run" / "config.yaml", old.parent / "own"
    succeeds("train", "--config", config, "--data", data, "--out", old / "again", "--quiet")
    assert near(old / "again", "after_one_epoch")


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


@pytest.mark.parametrize("format", ["5", "two", "true", "[1]"])
def test_a_format_of_the_future_is_refused(format):
    with pytest.raises(ConfigError, match=r"here: is of format .*; this version reads up to 4"):
        Config.from_yaml(f"format: {format}\ntask: images\n", "here")
