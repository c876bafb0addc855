"""The files of a run: whole or refused, and never a way to run code."""

import random

import pytest
import torch
from safetensors.torch import save_file

from lab.damaged import Bomb
from liespline.lab.data import DataError
from liespline.lab.runs.checkpoint import SafeCheckpoints
from liespline.lab.runs.folder import Run
from liespline.lab.runs.model_file import read_weights, save_weights


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "model.safetensors"
    tensors = {"a": torch.randn(3, 4), "b.half": torch.ones(5, dtype=torch.bfloat16), "n": torch.tensor(7)}
    save_weights(path, tensors, {"config": {"task": "digits"}})
    return path, tensors


def test_weights_and_description_come_back(weights):
    path, tensors = weights
    found, about = read_weights(path)
    assert about == {"config": {"task": "digits"}}
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[k], tensors[k]) and found[k].dtype == tensors[k].dtype for k in tensors)


def test_every_flipped_bit_and_every_truncation_is_noticed(weights):
    path, _ = weights
    good = path.read_bytes()
    draw = random.Random(0)
    for _ in range(300):
        bad = bytearray(good)
        bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
        path.write_bytes(bad)
        with pytest.raises(DataError):
            read_weights(path)
    for length in range(0, len(good), 7):
        path.write_bytes(good[:length])
        with pytest.raises(DataError):
            read_weights(path)


def test_foreign_weights_are_refused(tmp_path):
    path = tmp_path / "other.safetensors"
    save_file({"a": torch.zeros(2)}, path)
    with pytest.raises(DataError, match="not of a network trained"):
        read_weights(path)
    with pytest.raises(DataError, match="does not exist"):
        read_weights(tmp_path / "nothing")


def test_a_pickle_in_a_whole_archive_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"state_dict": Bomb(), "epoch": 1, "global_step": 1}, "last.ckpt")
    with pytest.raises(DataError, match="not a whole checkpoint"):
        SafeCheckpoints().load_checkpoint("last.ckpt")
    assert [file.name for file in tmp_path.iterdir()] == ["last.ckpt"]


def test_a_flipped_bit_in_a_checkpoint_is_noticed_where_torch_is_silent(tmp_path):
    path = tmp_path / "last.ckpt"
    state = {"state_dict": {"w": torch.arange(4096.0)}, "epoch": 3, "global_step": 9}
    SafeCheckpoints().save_checkpoint(state, path)
    loaded = SafeCheckpoints().load_checkpoint(path)
    assert loaded["epoch"] == 3
    assert torch.equal(loaded["state_dict"]["w"], state["state_dict"]["w"])
    bad = bytearray(path.read_bytes())
    bad[bad.index(torch.arange(2000.0, 2010.0).numpy().tobytes())] ^= 1
    path.write_bytes(bad)
    assert not torch.equal(torch.load(path, weights_only=True)["state_dict"]["w"], state["state_dict"]["w"])
    with pytest.raises(DataError, match="damaged"):
        SafeCheckpoints().load_checkpoint(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"scores": {"accuracy": 0.', "results.json: is no JSON .* truncated or damaged"),
        ("[1, 2]", "results.json: holds list; expected names and values"),
        ('{"scores": {}}', "results.json: has no 'parameters'; remove it and resume with --resume"),
        (None, "results.json: does not exist; expected the results of a finished run"),
    ],
)
def test_results_that_are_none_are_refused(tmp_path, text, words):
    run = Run(tmp_path)
    if text is not None:
        run.results_file.write_text(text)
    with pytest.raises(DataError, match=words):
        run.read_results("scores", "parameters")


def test_of_the_epochs_a_torn_last_line_is_left_out(tmp_path):
    run = Run(tmp_path)
    assert run.read_metrics() == []
    for epoch in range(3):
        run.append_metrics({"epoch": epoch})
    whole = run.metrics_file.read_bytes()
    run.metrics_file.write_bytes(whole[:-4])
    assert [row["epoch"] for row in run.read_metrics()] == [0, 1]
    run.metrics_file.write_bytes(whole[:5] + whole[9:])
    with pytest.raises(DataError, match=r"metrics.jsonl, line 1: is no JSON"):
        run.read_metrics()
