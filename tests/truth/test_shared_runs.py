"""A run handed on to others: the same network, its scores, its command, and nothing of the machine it was made on."""

import re
import shlex
import sys

import pytest
import torch

import liespline as ls
from lab.segment_folder import discs
from liespline.lab.runs.model_file import read_weights
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
