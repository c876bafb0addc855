"""Runs and exported networks handed on to others: the same predictions, and nothing of the machine they come from."""

import ast
import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

import liespline as ls
from lab.data_files import discs
from liespline.lab import load
from liespline.lab.evaluation.onnx_file import about
from liespline.lab.runs.model_file import read_weights
from liespline.lab.runs.sharing import command as command_of
from liespline.lab.settings import SETTINGS
from liespline.lab.tasks.defaults import DEFAULTS
from truth.new_images import rows_of, shares
from truth.road import liespline
from truth.shell import fails, succeeds

SMALL = "--patch 24 --set widths=2,3 --elements 4 --epochs 2 --augment flip --seed 3 --accelerator cpu --tta-grids 2"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    root = tmp_path_factory.mktemp("somewhere-private")
    discs(root / "discs")
    succeeds("train", "segment", "--data", root / "discs", *SMALL.split(), "--out", root / "run", "--quiet")
    return root / "run"


def test_a_run_comes_back_bit_by_bit(run, tmp_path) -> None:
    network = ls.load(run)
    network.save_pretrained(tmp_path / "net", data="discs", license="cc0-1.0")
    assert {file.name for file in (tmp_path / "net").iterdir()} == {
        "config.json", "model.safetensors", "results.json", "README.md",
    }  # fmt: skip
    (own, _), (other, _) = (read_weights(folder / "model.safetensors") for folder in (run, tmp_path / "net"))
    assert own.keys() == other.keys()
    assert all(torch.equal(own[name], other[name]) for name in own)
    back, x = ls.load(tmp_path / "net"), torch.rand(1, 1, 24, 24)
    with torch.no_grad():
        assert torch.equal(network(x), back(x))
    assert back.results == network.results
    assert back.checkpoint_metric == network.checkpoint_metric == "dice"
    for file in (tmp_path / "net").iterdir():
        assert b"somewhere-private" not in file.read_bytes(), file.name


def test_what_was_trained_further_is_what_is_saved(run, tmp_path) -> None:
    network = ls.load(run)
    with torch.no_grad():
        next(network.network.networks[0].parameters()).add_(1)
    network.save_pretrained(tmp_path)
    assert torch.equal(next(ls.load(tmp_path).network.parameters()), next(network.network.parameters()))


def test_the_command_on_the_card_trains_the_same_network(run, tmp_path) -> None:
    ls.load(run).save_pretrained(tmp_path / "net", name="someone/net")
    card = (tmp_path / "net" / "README.md").read_text()
    (found,) = re.findall(r"`(liespline train .*)`", card)
    words = shlex.split(found)[1:]
    words[words.index("--data") + 1] = run.parent / "discs"
    succeeds(*words, "--accelerator", "cpu", "--out", tmp_path / "again", "--quiet")
    (own, _), (other, _) = (read_weights(folder / "model.safetensors") for folder in (run, tmp_path / "again"))
    assert all(torch.equal(own[name], other[name]) for name in own)
    assert f"{100 * ls.load(run).results['scores']['dice']:.1f} %" in card
    assert "liespline.load('someone/net')" in card


@pytest.mark.parametrize(
    "given",
    [
        {"task": "segment", "grid_jitter": (0.0, 0.0, 1.0), "group": "so3", "intensity_range": (-160.0, 240.0)},
        {"task": "volumes", "elements": (8, 4), "group": "sim2", "widths": (4, 6), "kernel_size": (1, 5, 5)},
        {"task": "images", "size": 48, "breaking": True, "smooth": True, "restrict": "2=so2,4=none", "lr": 0.5},
        {"task": "images", "label_type": "tags", "labels": "my labels.csv", "dropout": 0.25, "parameters": 10_000},
    ],
)
def test_a_command_says_every_setting(given) -> None:
    config = DEFAULTS[task := given.pop("task")].updated(**given)
    start, *words = shlex.split(command_of(config))[1:]
    assert [start, words.pop(0)] == ["train", task]
    found = {}
    while words:
        name = words.pop(0)
        if name == "--set":
            name, _, text = words.pop(0).partition("=")
        else:
            name = name.removeprefix("--").replace("-", "_")
            text = True if SETTINGS[name].kind is bool else words.pop(0)
        found[name] = SETTINGS[name].read(text)
    assert DEFAULTS[task].updated(**found) == config


def test_a_name_that_nothing_has_is_refused_in_words(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # importing it fails
    image = run.parent / "discs" / "images" / "00.png"
    assert "there is no zoo:cats, but zoo:" in fails("predict", "zoo:cats", image)
    assert "pip install 'liespline[hub]'" in fails("predict", "someone-unknown/net", image)
    assert "does not exist" in fails("predict", tmp_path / "net", image)
    assert "there is no zoo:../zoo" in fails("predict", "zoo:../zoo", image)


def test_folds_are_not_saved_as_one(run, tmp_path) -> None:
    (tmp_path / "folds").mkdir()
    for fold in (1, 2):
        (tmp_path / "folds" / f"fold-{fold}").symlink_to(run)
    with pytest.raises(ValueError, match="the 2 networks of --folds 2; save one of them"):
        ls.load(tmp_path / "folds").save_pretrained(tmp_path / "net")


DOCS = Path(__file__).parents[2] / "docs" / "guide" / "runs.md"


def the_script():
    """The block of the docs that uses an ONNX file, which imports nothing of ours."""
    blocks = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    (script,) = (block for block in blocks if "onnxruntime.InferenceSession" in block)
    tree = list(ast.walk(ast.parse(script)))
    names = {alias.name for node in tree if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in tree if isinstance(node, ast.ImportFrom)}
    assert names == {"json", "pathlib", "numpy", "onnxruntime", "PIL"}
    return script


@pytest.mark.parametrize("network", ["colour", "grey"])
@pytest.mark.parametrize("data", ["deep", "shallow"])
def test_the_script_of_the_docs_reproduces_predict(mixed, network, data, tmp_path, monkeypatch):
    """Mixed sizes, EXIF orientations, transparency, palettes, 16-bit grey; colours for grey and grey for colours."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cells").symlink_to(mixed / data)
    liespline("export", mixed / network, "--onnx", "cells.onnx")
    liespline("predict", mixed / network, "cells", "--out", "a.csv")
    names = {}
    exec(the_script(), names)
    found = dict(zip(map(str, names["files"]), names["probabilities"], strict=True))
    rows = rows_of("a.csv")
    assert len(rows) == len(found) >= 20
    for row in rows:
        np.testing.assert_allclose(found[row["image"]], shares(row), atol=1e-4, err_msg=row["image"])
        assert names["classes"][found[row["image"]].argmax()] == row["class"]


def test_the_metadata_say_all_of_it(mixed, spots, balls, tmp_path):
    liespline("export", mixed / "colour", "--onnx", tmp_path / "net.onnx")
    colour = onnxruntime.InferenceSession(str(tmp_path / "net.onnx")).get_modelmeta().custom_metadata_map
    runs = (mixed / "grey", spots / "run", balls / "windowed", balls / "by-itself")
    grey, plain, windowed, alone = (about(load(run)) for run in runs)
    assert (colour["largest"], grey["largest"]) == ("65535", "255")
    assert json.loads(colour["resize"])["shorter_side"] == 17
    assert {"filter": "bicubic", "antialias": True}.items() <= json.loads(grey["resize"]).items()
    assert "white" in colour["background"]
    assert "EXIF" in colour["orientation"]
    assert json.loads(grey["grey"]) == [0.299, 0.587, 0.114]
    assert "grey" not in colour
    assert "resize" not in plain
    for found, run in ((colour, mixed / "colour"), (plain, spots / "run")):
        known = json.loads(found["training_range"])
        assert known == json.loads((run / "data.json").read_text())["value_range"]
    assert json.loads(windowed["intensity_range"]) == [-1000, 1000]
    assert json.loads(alone["percentiles"]) == [0.5, 99.5]
    for found in (windowed, alone):
        assert float(found["spacing_mm"]) == pytest.approx(1.5 ** (1 / 3), abs=1e-3)
        assert "lowest value" in found["box"]
        assert "RAS" in found["axes"]
    assert "training_range" not in alone


def test_a_run_goes_to_wsinfer(mixed, run, tmp_path):
    liespline("export", mixed / "colour", "--wsinfer", tmp_path / "net", "--spacing-um", 0.5)
    trained, x = load(mixed / "colour"), torch.rand(3, 3, 17, 17)
    with torch.no_grad():
        found = torch.jit.load(tmp_path / "net" / "torchscript_model.pt")(x)
        torch.testing.assert_close(found, trained(x), atol=1e-4, rtol=1e-4)
    config = json.loads((tmp_path / "net" / "config.json").read_text())
    assert (config["patch_size_pixels"], config["spacing_um_px"]) == (17, 0.5)
    assert tuple(config["class_names"]) == trained.classes
    assert "WSInfer takes square patches in colour" in fails("export", run, "--wsinfer", tmp_path, "--spacing-um", 1)
    for words in ((), ("--wsinfer", tmp_path), ("--onnx", tmp_path / "a.onnx", "--spacing-um", 1), ("--compact",)):
        assert "say --onnx FILE" in fails("export", mixed / "colour", *words)
