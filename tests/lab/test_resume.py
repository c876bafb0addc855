"""Checkpoints, and runs that resume from them bit for bit."""

import random
import shlex
import shutil
from dataclasses import replace

import pytest
import torch
from lightning.pytorch import Trainer
from safetensors.torch import save_file

from lab.damaged import Bomb
from lab.small_runs import new_run, resumed_run
from liespline.lab import load
from liespline.lab.data import DataError
from liespline.lab.runs.checkpoint import SafeCheckpoints
from liespline.lab.runs.folder import Run
from liespline.lab.runs.model_file import read_weights, save_weights
from liespline.lab.settings import ConfigError
from liespline.lab.tasks import find_task
from truth.shell import fails


@pytest.mark.parametrize("how", [KeyboardInterrupt(), SystemExit(143)])
def test_a_run_that_is_stopped_says_how_to_go_on(how, tmp_path, monkeypatch, capsys):
    def stopped(*args, **more):
        raise how

    monkeypatch.setattr(Trainer, "fit", stopped)
    config = find_task("digits").defaults.updated(elements=2, widths=(2, 2, 3), accelerator="cpu")
    folder = tmp_path / ("a long name " * 8)  # that must not be broken into lines
    with pytest.raises(type(how)):
        new_run(config, folder)
    said = capsys.readouterr().err.strip()
    assert shlex.split(said.removeprefix("Stopped. Resume with: ")) == ["liespline", "train", "--resume", str(folder)]
    assert Run.open(folder)[1] == config


@pytest.fixture(scope="module")
def digits_run(tmp_path_factory):
    """A finished run of one epoch."""
    config = find_task("digits").defaults.updated(
        elements=2, widths=(2, 2, 3), epochs=1, batch_size=128, accelerator="cpu"
    )
    return new_run(config, tmp_path_factory.mktemp("runs") / "one")


def test_more_epochs_make_a_finished_run_longer(digits_run, tmp_path):
    """Resumed with more epochs it goes on from its last one, and ends with results of its own."""
    folder = tmp_path / "longer"
    shutil.copytree(digits_run.path, folder)
    before = Run(folder).read_metrics()
    run = resumed_run(folder, epochs=3)
    rows = run.read_metrics()
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert rows[0] == before[0]
    assert Run.open(folder)[1].training.epochs == 3
    assert run.read_results("seconds")["seconds"] > before[0]["seconds"]
    assert run.complete
    state = SafeCheckpoints().load_checkpoint(run.last_checkpoint)
    assert state["global_step"] == 3 * before[0]["step"]


@pytest.mark.parametrize(
    ("given", "words"),
    [({"lr": 0.5}, ["lr = 0.5", "a run keeps its lr"]), ({"elements": 4}, ["elements = 4", "--init-from"])],
)
def test_what_a_run_was_begun_with_stays(digits_run, given, words):
    with pytest.raises(ConfigError) as error:
        resumed_run(digits_run.path, **given)
    assert all(word in str(error.value) for word in words)


def test_fewer_epochs_than_were_done_are_refused(digits_run, tmp_path):
    shutil.copytree(digits_run.path, tmp_path / "run")
    run = resumed_run(tmp_path / "run", epochs=2)
    with pytest.raises(ConfigError, match="epochs = 1: the run has done 2"):
        resumed_run(run.path, epochs=1)


def test_data_that_moved_are_found_again(tmp_path, image_folder, liespline):
    """An unfinished run goes on, and a finished one is evaluated, on a folder that has another name by now."""
    folder, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    shutil.copytree(image_folder, folder)
    config = find_task("images").defaults.updated(
        data=str(folder), elements=2, widths=(2, 2), epochs=1, accelerator="cpu"
    )
    run = new_run(config, tmp_path / "run")
    folder.rename(elsewhere)
    assert str(folder) in fails("evaluate", run.path)
    assert liespline("evaluate", run.path, "--data", elsewhere)[0] == 0
    assert liespline("train", "--resume", run.path, "--data", elsewhere, "--epochs", 2, "--quiet")[0] == 0
    assert Run.open(run.path)[1].data == str(elsewhere)
    assert len(run.read_metrics()) == 2


def first_weights(config, folder):
    """The weights before the first step: what a learning rate that changes nothing leaves."""
    return load(new_run(config.updated(lr=1e-30, weight_decay=1e-30, epochs=1), folder).path).network.state_dict()


def test_a_run_begins_with_the_weights_of_another(digits_run, tmp_path, image_folder):
    """All of them for the same task; all but the last layer's where the classes are others."""
    config = Run.open(digits_run.path)[1].updated(init_from=str(digits_run.path), seed=5)
    source = load(digits_run.path).network.state_dict()
    learned = [name for name in source if not name.endswith(("running_mean", "running_var", "num_batches_tracked"))]
    begun = first_weights(config, tmp_path / "same")
    assert all(torch.equal(begun[name], source[name]) for name in learned)
    cold = first_weights(replace(config, training=replace(config.training, init_from=None)), tmp_path / "cold")
    assert not torch.equal(cold[learned[0]], source[learned[0]])

    two = find_task("images").defaults.updated(data=str(image_folder), elements=2, widths=(2, 2, 3), accelerator="cpu")
    two = two.updated(kernel=config.network.kernel)
    begun = first_weights(two.updated(init_from=str(digits_run.model_file)), tmp_path / "two classes")
    head = [name for name in learned if begun[name].shape != source[name].shape]
    assert head
    assert all(name.startswith(learned[-1].rpartition(".")[0]) for name in head)
    assert all(torch.equal(begun[name], source[name]) for name in learned if name not in head)
    with pytest.raises(DataError, match=r"it has shape \(2, .*\), the network has shape \(3, "):
        new_run(config.updated(widths=(3, 3, 3)), tmp_path / "other widths")
    with pytest.raises(DataError, match="has no such tensor"):
        new_run(config.updated(ensemble=2), tmp_path / "two")
    assert not (tmp_path / "other widths").exists()


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
